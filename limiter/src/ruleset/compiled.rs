//! A rule with what can be worked out once.

use alloc::{string::String, vec::Vec};

use super::part;
use crate::{
    address::Cidr,
    key::{CounterKey, HashSeed, KeyHasher, RuleId},
    quota::Algorithm,
    request::{Request, parts},
    rule::{Condition, Expect, HostPattern, PathPattern, Rule, text::TextError},
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

/// A condition, ready to be asked. From the cheapest to the dearest.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Never,
    Method(Vec<String>),
    Address(Vec<Cidr>),
    Host(Vec<HostPattern>),
    Path(Vec<PathPattern>),
    Header(String, Expect),
}

/// The identity of a domain's rule of this name. Not secret: it names rules in
/// messages, and must not change when the seed does.
pub(super) fn rule_id(domain: &str, name: &str) -> RuleId {
    let mut hasher = KeyHasher::new(HashSeed::default());
    hasher.value(domain.as_bytes());
    hasher.value(name.as_bytes());
    hasher.finish_rule()
}

impl Compiled {
    pub(super) fn new(domain: &str, seed: HashSeed, rule: Rule, mut tests: Vec<Test>) -> Self {
        tests.sort_by_key(Test::rank);
        Self {
            id: rule_id(domain, &rule.name),
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

/// Everything that, if it changes, makes a rule count anew: whose rule it is,
/// what it counts per, its window and its algorithm. Its limit is not among it,
/// nor what it matches or does.
fn common(domain: &str, seed: HashSeed, rule: &Rule) -> KeyHasher {
    let mut hasher = KeyHasher::new(seed);
    hasher.value(domain.as_bytes());
    hasher.value(rule.name.as_bytes());
    hasher.value(&[match rule.quota.algorithm {
        Algorithm::FixedWindow => 1,
        Algorithm::SlidingWindow => 2,
        Algorithm::TokenBucket => 3,
    }]);
    hasher.value(&rule.quota.window.micros().get().to_be_bytes());
    for key in &rule.key {
        part::describe(&mut hasher, key);
    }
    hasher
}

impl Test {
    pub(super) fn new(condition: &Condition) -> Result<Self, TextError> {
        Ok(match condition {
            Condition::Unsupported => Self::Never,
            Condition::Method(methods) => Self::Method(methods.clone()),
            Condition::Address(blocks) => Self::Address(blocks.clone()),
            Condition::Host(hosts) => Self::Host(each(hosts, HostPattern::new)?),
            Condition::Path(paths) => Self::Path(each(paths, PathPattern::new)?),
            Condition::Header { name, expect } => Self::Header(name.clone(), expect.clone()),
        })
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Never => 0,
            Self::Method(_) => 1,
            Self::Address(_) => 2,
            Self::Host(_) => 3,
            Self::Path(_) => 4,
            Self::Header(..) => 5,
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
            Self::Header(name, expect) => match (expect, request.header(name)) {
                (Expect::Present, value) => value.is_some(),
                (Expect::Absent, value) => value.is_none(),
                (Expect::OneOf(values), Some(value)) => one_of(values, value),
                (Expect::OneOf(_), None) => false,
            },
        }
    }
}

fn one_of(values: &[String], value: &[u8]) -> bool {
    values.iter().any(|wanted| wanted.as_bytes() == value)
}

fn each<T>(
    values: &[String],
    read: impl Fn(&str) -> Result<T, TextError>,
) -> Result<Vec<T>, TextError> {
    values.iter().map(|value| read(value)).collect()
}
