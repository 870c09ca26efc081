//! A set of rules that is enforced, replaced and numbered as one.

use alloc::{string::String, vec::Vec};

use crate::{
    address::Cidr,
    key::{HashSeed, RuleId},
    rule::Rule,
};

/// All the rules of a domain at one revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSet {
    /// Grows with every change; zero before any rule was ever set.
    pub revision: u64,
    /// Whose rules these are.
    pub domain: String,
    /// The proxies whose word on the client's address is taken.
    pub trusted_proxies: Vec<Cidr>,
    /// The secret that counters are named with.
    pub seed: HashSeed,
    rules: Vec<Compiled>,
}

/// A rule with what can be worked out once.
#[derive(Clone, Debug, PartialEq)]
struct Compiled {
    id: RuleId,
    rule: Rule,
}
