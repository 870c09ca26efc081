//! What a request says of itself, and what the rules make of it.

use alloc::sync::Arc;
use core::net::IpAddr;

use smallvec::SmallVec;

use crate::{key::CounterKey, rule::Attribute, ruleset::RuleSet};

pub(crate) mod parts;

/// A request as the rules see it. Values are bytes: nothing promises that what
/// a client sends is text.
pub trait Request {
    /// The method, as sent.
    fn method(&self) -> &[u8];
    /// The host, as sent: it may carry a port.
    fn host(&self) -> &[u8];
    /// The path, as sent: it may carry a query.
    fn path(&self) -> &[u8];
    /// A header's value, by its lower-case name; the first of several.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// The client's address, once proxies that are trusted have been seen past.
    fn address(&self) -> Option<IpAddr>;
    /// What the host knows of it; none if it does not.
    fn attribute(&self, attribute: &Attribute) -> Option<&[u8]> {
        let _ = attribute;
        None
    }
}

/// What one request spends, and under which rules.
#[derive(Clone, Debug)]
pub struct Query {
    /// The rules that it was asked of.
    pub rules: Arc<RuleSet>,
    /// One for each rule that applies.
    pub hits: SmallVec<[Hit; 4]>,
}

/// What a request spends under one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The rule's place in the set.
    pub rule: usize,
    /// The counter.
    pub key: CounterKey,
    /// Hits it spends.
    pub cost: u64,
}
