//! What a request must look like for a rule to apply.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::Attribute;
use crate::{address::Cidr, list::List};

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The host, without its port and case, is one of these. A leading `*.`
    /// stands for one or more labels.
    Host(Vec<String>),
    /// The path, without its query, fits one of these patterns (see
    /// [`PathPattern`](super::PathPattern)).
    Path(Vec<String>),
    /// The method is one of these, to the byte.
    Method(Vec<String>),
    /// A header, by its lower-case name, is as expected.
    Header {
        /// Its name in lower case.
        name: String,
        /// What is expected of it.
        expect: Expect,
    },
    /// The client's address is in one of these blocks.
    Address(Vec<Cidr>),
    /// A cookie is as expected.
    Cookie {
        /// Its name.
        name: String,
        /// What is expected of it.
        expect: Expect,
    },
    /// A query parameter, decoded, is as expected.
    Query {
        /// Its name, decoded.
        name: String,
        /// What is expected of it.
        expect: Expect,
    },
    /// What the host knows of the request is as expected.
    Attribute {
        /// What.
        attribute: Attribute,
        /// What is expected of it.
        expect: Expect,
    },
    /// The client's address is in one of the blocks of this list.
    AddressIn(Arc<List>),
    /// The value of the first part of the rule's key that requests differ in is in
    /// this list: as it is counted under, and of an address the whole of it.
    KeyIn(Arc<List>),
    /// Of at least one of these lists, every condition holds.
    Any(Vec<Vec<Condition>>),
    /// There is none of these lists of which every condition holds.
    None(Vec<Vec<Condition>>),
    /// Something that a newer release understands and this one does not: it
    /// never holds, so that what is not understood cannot widen a rule.
    Unsupported,
}

impl Condition {
    /// Adds the lists that it looks at.
    pub fn lists<'a>(&'a self, lists: &mut Vec<&'a Arc<List>>) {
        match self {
            Self::AddressIn(list) | Self::KeyIn(list) => lists.push(list),
            Self::Header { expect, .. }
            | Self::Cookie { expect, .. }
            | Self::Query { expect, .. }
            | Self::Attribute { expect, .. } => {
                if let Expect::In(list) = expect {
                    lists.push(list);
                }
            }
            Self::Any(inner) | Self::None(inner) => {
                inner.iter().flatten().for_each(|one| one.lists(lists));
            }
            Self::Host(_) | Self::Path(_) | Self::Method(_) | Self::Address(_) => {}
            Self::Unsupported => {}
        }
    }
}

/// What is expected of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It is there, empty or not.
    Present,
    /// It is not there.
    Absent,
    /// It is one of these, to the byte.
    OneOf(Vec<String>),
    /// It is in this list, to the byte.
    In(Arc<List>),
    /// It looks like one of these: `*` stands for any bytes, none included, and
    /// everything else for itself.
    Like(Vec<String>),
}
