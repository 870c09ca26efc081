//! Rules as these tests write them, and in the wire's form.

use limiter::key::HashSeed;
use limiter::rule::{Rule, Scope};
use limiter::ruleset::RuleSet;
use limiter::wire;
use prost::Message;
use weir_tests::rules::per_header;

/// The header that counters are kept per.
pub const HEADER: &str = "x-key";

/// A set of these rules.
///
/// # Panics
/// If they are not valid.
#[must_use]
pub fn set(revision: u64, rules: Vec<Rule>) -> RuleSet {
    let set = RuleSet::new("test", revision, Vec::new(), HashSeed([7; 16]), rules);
    set.expect("valid rules")
}

/// A set as `weir rules compile` writes it.
#[must_use]
pub fn compiled(set: &RuleSet) -> Vec<u8> {
    wire::RuleSet::from(set).encode_to_vec()
}

/// `limit` hits an hour for each key, over the whole fleet.
#[must_use]
pub fn shared(limit: u64) -> Rule {
    per_header("per-key", HEADER, limit, 3_600)
}

/// The same for each instance on its own.
#[must_use]
pub fn alone(limit: u64) -> Rule {
    let mut rule = shared(limit);
    rule.scope = Scope::Pop;
    rule
}
