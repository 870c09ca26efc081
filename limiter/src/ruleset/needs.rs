//! What of a request a set of rules ever looks at.
//!
//! A host charges for every value that is fetched from it: an adapter fetches
//! what is needed, and no more.

use alloc::{string::String, vec::Vec};

use super::RuleSet;
use crate::rule::{Attribute, Condition, Cost, KeyPart};

/// What of a request a set of rules ever looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The method.
    pub method: bool,
    /// The host.
    pub host: bool,
    /// The path or its query.
    pub path: bool,
    /// The client's address.
    pub address: bool,
    /// `X-Forwarded-For`, to find the client's address by.
    pub forwarded_for: bool,
    /// Headers that rules name, `cookie` among them if any rule looks at a
    /// cookie: in lower case, sorted, each once.
    pub headers: Vec<String>,
    /// What the host knows of it, each once.
    pub attributes: Vec<Attribute>,
}

impl Needs {
    pub(super) fn of(rules: &RuleSet) -> Self {
        let mut needs = Self::default();
        for rule in rules.rules().filter(|rule| rule.limits()) {
            rule.all_conditions().for_each(|one| needs.condition(one));
            rule.key.iter().for_each(|part| needs.key_part(part));
            if let Cost::RequestHeader { name, .. } = &rule.cost {
                needs.headers.push(name.clone());
            }
        }
        needs.forwarded_for = needs.address && !rules.trusted_proxies.is_empty();
        needs.headers.sort_unstable();
        needs.headers.dedup();
        needs
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Host(_) => self.host = true,
            Condition::Path(_) => self.path = true,
            Condition::Method(_) => self.method = true,
            Condition::Header { name, .. } => self.headers.push(name.clone()),
            Condition::Address(_) | Condition::AddressIn(_) => self.address = true,
            Condition::Cookie { .. } => self.headers.push("cookie".into()),
            Condition::Query { .. } => self.path = true,
            Condition::Attribute { attribute, .. } => self.attribute(attribute),
            Condition::Any(lists) | Condition::None(lists) => {
                lists.iter().flatten().for_each(|one| self.condition(one));
            }
            // What is in the key is needed for the key.
            Condition::KeyIn(_) | Condition::Unsupported => {}
        }
    }

    fn attribute(&mut self, attribute: &Attribute) {
        if !self.attributes.contains(attribute) {
            self.attributes.push(attribute.clone());
        }
    }

    fn key_part(&mut self, part: &KeyPart) {
        match part {
            KeyPart::Address { .. } => self.address = true,
            KeyPart::Header(name) => self.headers.push(name.clone()),
            KeyPart::Cookie(_) => self.headers.push("cookie".into()),
            KeyPart::Query(_) | KeyPart::Path | KeyPart::PathSegment(_) => self.path = true,
            KeyPart::Method => self.method = true,
            KeyPart::Host => self.host = true,
            KeyPart::Attribute(attribute) => self.attribute(attribute),
            KeyPart::Constant(_) => {}
            KeyPart::Optional(part) => self.key_part(part),
        }
    }
}
