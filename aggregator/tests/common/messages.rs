//! Rules to test with, and the messages of a source that runs them.

use std::sync::Arc;

use aggregator::rules::RuleFile;
use limiter::{
    key::{CounterKey, HashSeed},
    ruleset::RuleSet,
    wire::{Batch, ClaimGroup, CountGroup, SyncRequest},
};

/// Two rules that nothing in a test exhausts, and one that little does.
pub const RULES: &str = "\
version: 1
domain: test
rules:
  - { name: wide, key: [header.x-key], limit: 1000000000, window: 365d, algorithm: fixed_window }
  - { name: other, key: [header.x-key], limit: 1000000000, window: 365d, algorithm: fixed_window }
  - { name: three, key: [header.x-key, method], limit: 3, window: 365d, algorithm: fixed_window }
";

pub fn rules() -> Arc<RuleSet> {
    let file = RuleFile::parse("rules.yaml", RULES.as_bytes()).unwrap();
    Arc::new(file.into_rule_set(1, HashSeed::default()).unwrap())
}

/// The counter of one of the rules with one value in its key.
pub fn key(rules: &RuleSet, rule: &str, value: &str) -> CounterKey {
    let place = rules.by_name(rule).unwrap();
    rules.key_of(place, &[value.as_bytes()]).unwrap()
}

/// One count, as a group of its own.
pub fn group(rules: &RuleSet, rule: &str, key: CounterKey, hits: u64) -> CountGroup {
    CountGroup {
        rule: rules.id(rules.by_name(rule).unwrap()).unwrap().0,
        keys: key.to_bytes().to_vec().into(),
        hits: vec![hits],
        ..CountGroup::default()
    }
}

/// A message of source 7 with one batch: `hits` of `wide` under `value`.
pub fn flush(sequence: u64, value: &str, hits: u64) -> SyncRequest {
    let rules = rules();
    let key = key(&rules, "wide", value);
    SyncRequest {
        source: 7,
        message: sequence,
        rules_revision: 1,
        batches: vec![Batch {
            partition: key.partition(),
            epoch: 1,
            sequence,
            groups: vec![group(&rules, "wide", key, hits)],
        }],
        ..SyncRequest::default()
    }
}

/// A message that counts nothing and asks for one token.
pub fn ask(message: u64, value: &str) -> SyncRequest {
    let rules = rules();
    SyncRequest {
        source: 7,
        message,
        rules_revision: 1,
        claims: vec![ClaimGroup {
            rule: rules.id(0).unwrap().0,
            keys: key(&rules, "wide", value).to_bytes().to_vec().into(),
            wanted: vec![1],
            offered: vec![1],
            ..ClaimGroup::default()
        }],
        ..SyncRequest::default()
    }
}
