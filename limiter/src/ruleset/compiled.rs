//! A rule with what can be worked out once.

use alloc::vec::Vec;

use super::{part, test::Test};
use crate::{
    key::{CounterKey, HashSeed, KeyHasher, RuleId},
    quota::Algorithm,
    request::Request,
    rule::Rule,
};

/// A rule, ready to be asked.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) id: RuleId,
    pub(super) rule: Rule,
    /// Its conditions, the cheapest first.
    pub(super) tests: Vec<Test>,
    /// Has taken in what all its counters' names have in common.
    common: KeyHasher,
}

/// The number of a domain's rule of this identity ([`Rule::identity`]). Not secret:
/// it names rules in messages, and must not change when the seed does.
pub(super) fn rule_id(domain: &str, identity: &str) -> RuleId {
    let mut hasher = KeyHasher::new(HashSeed::default());
    hasher.value(domain.as_bytes());
    hasher.value(identity.as_bytes());
    hasher.finish_rule()
}

impl Compiled {
    pub(super) fn new(domain: &str, seed: HashSeed, rule: Rule, mut tests: Vec<Test>) -> Self {
        tests.sort_by_key(Test::rank);
        if rule.unlimited {
            tests = Vec::from([Test::Never]);
        }
        Self {
            id: rule_id(domain, &rule.identity()),
            tests,
            common: common(domain, seed, &rule),
            rule,
        }
    }

    /// The counter that a request spends from; none if the rule does not apply.
    #[inline]
    pub(super) fn key_for(&self, request: &impl Request) -> Option<CounterKey> {
        if !self.tests.iter().all(|test| test.holds(request)) {
            return None;
        }
        let mut hasher = self.common;
        for key in &self.rule.key {
            part::take(&mut hasher, key, request)?;
        }
        Some(hasher.finish())
    }

    /// What all its counters' names have in common, taken in.
    pub(super) const fn common(&self) -> KeyHasher {
        self.common
    }

    /// The counter that these values name.
    pub(super) fn key_of(&self, values: &[&[u8]]) -> Option<CounterKey> {
        if !self.rule.is_supported() {
            return None;
        }
        let mut hasher = self.common;
        let mut values = values.iter();
        for key in &self.rule.key {
            part::take_named(&mut hasher, key, &mut values)?;
        }
        values.next().is_none().then(|| hasher.finish())
    }
}

/// Everything that, if it changes, makes a rule count anew: whose rule it is, and for
/// which tier, what it counts per, its window and its algorithm. Its limit is not among it,
/// nor what it matches or does.
fn common(domain: &str, seed: HashSeed, rule: &Rule) -> KeyHasher {
    let mut hasher = KeyHasher::new(seed);
    hasher.value(domain.as_bytes());
    hasher.value(rule.identity().as_bytes());
    hasher.value(&[match rule.quota.algorithm {
        Algorithm::FixedWindow => 1,
        Algorithm::SlidingWindow => 2,
        Algorithm::TokenBucket => 3,
    }]);
    match rule.quota.window.fixed() {
        Some(length) => hasher.value(&length.get().to_be_bytes()),
        None => hasher.value(b"month"),
    }
    for key in &rule.key {
        part::describe(&mut hasher, key);
    }
    hasher
}
