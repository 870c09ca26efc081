//! A condition, ready to be asked.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::str;

use super::part;
use crate::{
    address::Cidr,
    list::List,
    request::{Request, parts},
    rule::{
        self, Attribute, Condition, Expect, HostPattern, KeyPart, PathPattern, text::TextError,
    },
};

/// A condition, ready to be asked. From the cheapest to the dearest.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Never,
    Method(Vec<String>),
    Address(Vec<Cidr>),
    Host(Vec<HostPattern>),
    Path(Vec<PathPattern>),
    Attribute(Attribute, Expect),
    Header(String, Expect),
    Cookie(String, Expect),
    Query(String, Expect),
    AddressIn(Arc<List>),
    /// A part of the key, never one that is optional.
    KeyIn(KeyPart, Arc<List>),
    Any(Vec<Vec<Test>>),
    None(Vec<Vec<Test>>),
}

impl Test {
    /// A condition of a rule whose key has this part that lists of keys are about.
    pub(super) fn new(condition: &Condition, listed: Option<&KeyPart>) -> Result<Self, TextError> {
        Ok(match condition {
            Condition::Unsupported => Self::Never,
            Condition::Method(methods) => Self::Method(methods.clone()),
            Condition::Address(blocks) => Self::Address(blocks.clone()),
            Condition::Host(hosts) => Self::Host(each(hosts, HostPattern::new)?),
            Condition::Path(paths) => Self::Path(each(paths, PathPattern::new)?),
            Condition::Header { name, expect } => Self::Header(name.clone(), expect.clone()),
            Condition::Attribute { attribute, expect } => {
                Self::Attribute(attribute.clone(), expect.clone())
            }
            Condition::Cookie { name, expect } => Self::Cookie(name.clone(), expect.clone()),
            Condition::Query { name, expect } => Self::Query(name.clone(), expect.clone()),
            Condition::AddressIn(list) => Self::AddressIn(Arc::clone(list)),
            Condition::KeyIn(list) => match listed {
                Some(part) => Self::KeyIn(part.clone(), Arc::clone(list)),
                None => Self::Never,
            },
            Condition::Any(lists) => Self::Any(alternatives(lists, listed)?),
            Condition::None(lists) => Self::None(alternatives(lists, listed)?),
        })
    }

    pub(super) const fn rank(&self) -> u8 {
        match self {
            Self::Never => 0,
            Self::Method(_) => 1,
            Self::Address(_) => 2,
            Self::Host(_) => 3,
            Self::Path(_) => 4,
            Self::Attribute(..) => 5,
            Self::Header(..) => 6,
            Self::Cookie(..) => 7,
            Self::Query(..) => 8,
            Self::AddressIn(_) => 9,
            Self::KeyIn(..) => 10,
            Self::Any(_) => 11,
            Self::None(_) => 12,
        }
    }

    pub(super) fn holds(&self, request: &impl Request) -> bool {
        match self {
            Self::Never => false,
            Self::Method(methods) => one_of(methods, request.method()),
            Self::Address(blocks) => request
                .address()
                .is_some_and(|address| blocks.iter().any(|block| block.contains(address))),
            Self::Host(hosts) => {
                let host = parts::host_only(request.host());
                hosts.iter().any(|pattern| pattern.fits(host))
            }
            Self::Path(paths) => {
                let path = request.path();
                paths.iter().any(|pattern| pattern.fits(path))
            }
            Self::Header(name, expect) => met(expect, request.header(name)),
            Self::Attribute(attribute, expect) => met(expect, request.attribute(attribute)),
            Self::Cookie(name, expect) => {
                let cookies = request.header("cookie");
                met(
                    expect,
                    cookies.and_then(|all| parts::cookie(all, name.as_bytes())),
                )
            }
            Self::Query(name, expect) => {
                met_by(expect, parts::query(request.path(), name.as_bytes()))
            }
            Self::AddressIn(list) => {
                let address = request.address();
                address.is_some_and(|address| list.has_address(address))
            }
            Self::KeyIn(part, list) => key_in(part, list, request),
            Self::Any(lists) => lists.iter().any(|list| all_hold(list, request)),
            Self::None(lists) => !lists.iter().any(|list| all_hold(list, request)),
        }
    }

    /// Whether it holds of a request of which nothing is known but the values of its
    /// key: what is about anything else does not.
    pub(super) fn holds_of_key(&self, values: &[&[u8]]) -> bool {
        let all_hold = |list: &Vec<Self>| list.iter().all(|test| test.holds_of_key(values));
        match self {
            Self::KeyIn(part, list) => key_named_in(part, list, values),
            Self::Any(lists) => lists.iter().any(all_hold),
            Self::None(lists) => !lists.iter().any(all_hold),
            _ => false,
        }
    }
}

fn key_in(part: &KeyPart, list: &List, request: &impl Request) -> bool {
    if let KeyPart::Address { .. } = part {
        return request
            .address()
            .is_some_and(|address| list.has_address(address));
    }
    let mut hasher = list.hasher();
    part::take(&mut hasher, part, request).is_some() && list.has_hashed(&hasher)
}

fn key_named_in(part: &KeyPart, list: &List, values: &[&[u8]]) -> bool {
    if let KeyPart::Address { .. } = part {
        let text = values.first().and_then(|value| str::from_utf8(value).ok());
        let address = text.and_then(|text| text.parse().ok());
        return address.is_some_and(|address| list.has_address(address));
    }
    let mut hasher = list.hasher();
    part::take_named(&mut hasher, part, &mut values.iter()).is_some() && list.has_hashed(&hasher)
}

fn all_hold(tests: &[Test], request: &impl Request) -> bool {
    tests.iter().all(|test| test.holds(request))
}

/// Whether a value, or that there is none, is as expected.
fn met(expect: &Expect, value: Option<&[u8]>) -> bool {
    match (expect, value) {
        (Expect::OneOf(values), Some(value)) => one_of(values, value),
        (Expect::In(list), Some(value)) => list.has(value),
        (expect, value) => met_by(expect, value.map(|value| value.iter().copied())),
    }
}

fn met_by(expect: &Expect, value: Option<impl Iterator<Item = u8> + Clone>) -> bool {
    match (expect, value) {
        (Expect::Present, value) => value.is_some(),
        (Expect::Absent, value) => value.is_none(),
        (Expect::OneOf(values), Some(value)) => {
            values.iter().any(|wanted| wanted.bytes().eq(value.clone()))
        }
        (Expect::Like(globs), Some(value)) => globs
            .iter()
            .any(|glob| rule::like(glob.as_bytes(), value.clone())),
        (Expect::In(list), Some(value)) => list.has_bytes(value),
        (Expect::OneOf(_) | Expect::In(_) | Expect::Like(_), None) => false,
    }
}

fn one_of(values: &[String], value: &[u8]) -> bool {
    values.iter().any(|wanted| wanted.as_bytes() == value)
}

fn alternatives(
    lists: &[Vec<Condition>],
    listed: Option<&KeyPart>,
) -> Result<Vec<Vec<Test>>, TextError> {
    let list = |list: &Vec<Condition>| {
        let tests: Result<Vec<_>, _> = list.iter().map(|one| Test::new(one, listed)).collect();
        tests.map(|mut tests| {
            tests.sort_by_key(Test::rank);
            tests
        })
    };
    lists.iter().map(list).collect()
}

fn each<T>(
    values: &[String],
    read: impl Fn(&str) -> Result<T, TextError>,
) -> Result<Vec<T>, TextError> {
    values.iter().map(|value| read(value)).collect()
}
