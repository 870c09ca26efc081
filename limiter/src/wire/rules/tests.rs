//! What rules keep on their way.

mod full;

use alloc::{string::ToString, vec};

use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::{
    quota::{Algorithm, Quota},
    rule::{Condition, Consistency, Cost, Scope},
    window::Window,
    wire,
};
use full::full;

fn optional(part: wire::KeyPart) -> wire::KeyPart {
    let kind = Some(wire::key_part::Kind::Optional(part.into()));
    wire::KeyPart { kind }
}

fn set(rules: Vec<Rule>) -> RuleSet {
    let proxies = vec![
        "10.0.0.0/8".parse().unwrap(),
        "2001:db8::1".parse().unwrap(),
    ];
    RuleSet::new("d", 7, proxies, HashSeed([3; 16]), rules).unwrap()
}

fn sent(change: impl Fn(&mut wire::Rule)) -> Result<RuleSet, RulesError> {
    let mut message = wire::RuleSet::from(&set(vec![full()]));
    change(&mut message.rules[0]);
    let bytes = message.encode_to_vec();
    RuleSet::try_from(wire::RuleSet::decode(&*bytes).unwrap())
}

#[test]
fn rules_arrive_as_they_were_sent() {
    let mut other = full();
    other.name = "other".into();
    other.scope = Scope::Pop;
    other.consistency = Consistency::Edge;
    other.quota = Quota::new(
        other.quota.limit,
        other.quota.window,
        Algorithm::FixedWindow,
    );
    let plain = Rule::new("plain", full().quota);
    let month = Quota::new(plain.quota.limit, Window::MONTH, Algorithm::FixedWindow);
    let month = Rule::new("month", month);
    let mut tier = plain.clone();
    tier.tier = Some("paid".into());
    tier.conditions = vec![Condition::Method(vec!["GET".into()])];
    tier.when = vec![Condition::Path(vec!["/a".into()])];
    let one = Quota::new(
        1.try_into().unwrap(),
        plain.quota.window,
        Algorithm::FixedWindow,
    );
    let mut unlimited = Rule::new("none", one);
    unlimited.unlimited = true;
    let newer = Rule::unsupported("newer");
    let rules = set(vec![full(), other, plain, month, tier, unlimited, newer]);
    let bytes = wire::RuleSet::from(&rules).encode_to_vec();
    let arrived = RuleSet::try_from(wire::RuleSet::decode(&*bytes).unwrap());
    assert_eq!(arrived, Ok(rules));
    let none = RuleSet::empty();
    assert_eq!(RuleSet::try_from(wire::RuleSet::from(&none)), Ok(none));
}

#[test]
fn a_rule_that_a_newer_region_says_more_of_applies_to_nothing() {
    let newer: [fn(&mut wire::Rule); 14] = [
        |rule| rule.window_months = 2,
        |rule| rule.requires = 1,
        |rule| rule.requires = 1 << 63,
        |rule| rule.conditions.push(wire::Condition { kind: None }),
        |rule| {
            let (name, expect) = ("x".into(), None);
            let kind = wire::condition::Kind::Header(wire::HeaderCondition { name, expect });
            rule.conditions.push(wire::Condition { kind: Some(kind) });
        },
        |rule| rule.key.push(wire::KeyPart { kind: None }),
        |rule| rule.key.push(optional(wire::KeyPart { kind: None })),
        |rule| {
            let inner = wire::Condition { kind: None };
            let list = wire::Conditions {
                conditions: vec![inner],
            };
            let lists = wire::Alternatives {
                alternatives: vec![list],
            };
            let kind = wire::condition::Kind::None(lists);
            rule.conditions.push(wire::Condition { kind: Some(kind) });
        },
        |rule| rule.algorithm = 9,
        |rule| rule.scope = 9,
        |rule| rule.consistency = -1,
        |rule| rule.no_lease = 9,
        |rule| rule.lease_expired = 9,
        |rule| rule.action = 9,
    ];
    for (place, newer) in newer.into_iter().enumerate() {
        let rules = sent(newer).unwrap();
        assert_eq!(rules.rule(0), Some(&Rule::unsupported("full")), "{place}");
    }
}

#[test]
fn who_knows_nothing_of_tiers_takes_one_for_a_rule_of_its_own_and_counts_alike() {
    let mut rule = Rule::new("r", full().quota);
    rule.tier = Some("paid".into());
    rule.when = vec![Condition::Method(vec!["GET".into()])];
    let knows = set(vec![Rule::new("r", full().quota), rule]);
    let mut message = wire::RuleSet::from(&knows);
    for rule in &mut message.rules {
        assert_eq!(rule.requires, 0);
        rule.tier = String::new();
        rule.tier_conditions = 0;
    }
    let knows_not = RuleSet::try_from(message).unwrap();
    assert_eq!(knows_not.rule(1).unwrap().name, "r@paid");
    assert_eq!(knows_not.id(1), knows.id(1));
    assert_eq!(knows_not.key_of(1, &[]), knows.key_of(1, &[]));
    assert_ne!(knows.key_of(1, &[]), knows.key_of(0, &[]));
}

#[test]
fn who_does_not_know_that_there_may_be_no_limit_applies_such_a_rule_to_nothing() {
    let mut rule = Rule::new("r", full().quota);
    rule.unlimited = true;
    let message = wire::Rule::from(&rule);
    assert_eq!((message.limit, message.requires), (0, features::UNLIMITED));
}

#[test]
fn who_does_not_know_months_applies_such_a_rule_to_nothing() {
    let limit = 100.try_into().unwrap();
    let quota = Quota::new(limit, Window::MONTH, Algorithm::SlidingWindow);
    let message = wire::Rule::from(&Rule::new("month", quota));
    assert_ne!(message.requires, 0);
    assert_eq!(message.window_us, 0);
}

#[test]
fn a_field_that_no_release_would_send_refuses_the_set_and_says_which() {
    let wrong = |change: fn(&mut wire::Rule)| match sent(change).unwrap_err() {
        RulesError::Rule {
            place,
            name,
            source,
        } => {
            assert_eq!((place, &*name), (0, "full"));
            source.to_string()
        }
        RulesError::Set(RuleSetError::Rule { source, .. }) => source.to_string(),
        other => other.to_string(),
    };
    assert_eq!(wrong(|rule| rule.limit = 0), "limit is zero");
    assert_eq!(wrong(|rule| rule.window_us = 0), "window_us is zero");
    assert_eq!(
        wrong(|rule| rule.tier = "paid".into()),
        "the name does not end in @paid, its tier"
    );
    assert_eq!(
        wrong(|rule| rule.cost = 0),
        "upfront is at least 1 and at most 9, got 0"
    );
    let bits = |v4_bits| {
        let v6_bits = 64;
        let kind = wire::key_part::Kind::Address(wire::AddressPart { v4_bits, v6_bits });
        vec![wire::KeyPart { kind: Some(kind) }]
    };
    let change = |v4_bits| move |rule: &mut wire::Rule| rule.key = bits(v4_bits);
    assert!(matches!(
        sent(change(300)),
        Err(RulesError::Rule {
            source: FieldError::Range {
                field: "v4_bits",
                got: 300
            },
            ..
        })
    ));
    assert!(matches!(sent(change(33)), Err(RulesError::Set(_))));
}

#[test]
fn a_rule_that_needs_the_response_is_left_alone_by_who_does_not_know_of_such() {
    let requires = |change: fn(&mut Rule)| {
        let mut rule = full();
        rule.refund.clear();
        rule.cost = 1.into();
        change(&mut rule);
        wire::Rule::from(&rule).requires
    };
    assert_eq!(requires(|_| {}), 0, "headers alone change no count");
    assert_eq!(requires(|rule| rule.refund = full().refund), 1 << 9);
    assert_eq!(requires(|rule| rule.cost = full().cost), 1 << 9);
    let asked = |rule: &mut Rule| {
        rule.cost = Cost::RequestHeader {
            name: "x-cost".into(),
            max: 5,
            default: 0,
        };
    };
    assert_eq!(requires(asked), 1 << 8);
    let newer = sent(|rule| rule.requires |= 1 << 63).unwrap();
    assert_eq!(newer.rule(0), Some(&Rule::unsupported("full")));
}

#[test]
fn a_set_that_no_release_would_send_says_why() {
    let message = || wire::RuleSet::from(&set(vec![full()]));
    let seed = wire::RuleSet {
        seed: vec![1, 2].into(),
        ..message()
    };
    assert_eq!(RuleSet::try_from(seed), Err(RulesError::Seed(2)));
    let proxies = wire::RuleSet {
        trusted_proxies: vec!["proxy".into()],
        ..message()
    };
    let error = RuleSet::try_from(proxies).unwrap_err();
    assert_eq!(
        error.to_string(),
        "trusted proxy proxy is no block of addresses"
    );
}

proptest! {
    #[test]
    fn no_bytes_at_all_make_the_reader_panic(bytes: Vec<u8>, place: usize, value: u8) {
        let mut valid = wire::RuleSet::from(&set(vec![full()])).encode_to_vec();
        let place = place % valid.len();
        valid[place] = value;
        for bytes in [bytes, valid] {
            if let Ok(message) = wire::RuleSet::decode(&*bytes) {
                let _ = RuleSet::try_from(message);
            }
        }
    }
}
