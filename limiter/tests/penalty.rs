//! A penalty is felt everywhere, whoever exceeded the limit.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod common;

use std::sync::Arc;

use common::{Region, SEEDS, at, query, rule, rules, settings, source};
use limiter::{
    decision::{Decision, Tier, Verdict},
    edge::Limiter,
    quota::Algorithm,
    rule::Fallback,
    ruleset::RuleSet,
    time::Micros,
};

/// Ten a second, and five seconds of nothing for who wants more.
fn strict() -> Arc<RuleSet> {
    let mut rule = rule(10, 1_000, Algorithm::TokenBucket);
    rule.penalty = Micros::from_secs(5);
    rules(1, vec![rule])
}

fn decide(region: &mut Region, limiter: &mut Limiter, ms: u64) -> Verdict {
    let query = query(limiter.rules(), "a");
    let mut verdict = limiter.decide(&query, at(ms));
    if matches!(verdict, Verdict::Hold { .. }) {
        region.serve(limiter, at(ms));
        verdict = limiter.decide_held(&query, at(ms), true);
    }
    region.serve(limiter, at(ms));
    verdict
}

fn denied(verdict: Verdict) -> Decision {
    match verdict {
        Verdict::Deny(decision) => decision,
        other => panic!("{other:?}"),
    }
}

/// A region of two sources, the first of which has exceeded the limit at 6 s.
fn exceeded() -> (Region, Limiter, Limiter) {
    let rules = strict();
    let mut region = Region::new(&rules, SEEDS);
    let [mut one, mut other] = [1, 2].map(|number| source(number, &rules, settings()));
    for second in 0..6 {
        region.serve(&mut one, at(second * 1_000));
        region.serve(&mut other, at(second * 1_000));
    }
    for request in 0..40 {
        decide(&mut region, &mut one, 6_000 + request / 10);
    }
    (region, one, other)
}

#[test]
fn who_has_not_exceeded_the_limit_is_denied_for_the_rest_of_the_penalty() {
    let (mut region, _, mut other) = exceeded();
    region.serve(&mut other, at(7_100));
    let wait = denied(decide(&mut region, &mut other, 8_500))
        .retry_after
        .unwrap();
    assert!((2_400..=2_600).contains(&(wait.get() / 1_000)), "{wait}");
    assert!(matches!(
        decide(&mut region, &mut other, 11_200),
        Verdict::Allow(_)
    ));
}

#[test]
fn a_check_feels_the_penalty_and_brings_it_on() {
    let (mut region, ..) = exceeded();
    let rules = strict();
    let query = query(&rules, "a");
    let check = |region: &mut Region, ms| region.ledger.check(&query, at(ms), &mut region.log);
    let wait = denied(check(&mut region, 9_000)).retry_after.unwrap();
    assert!((1_900..=2_100).contains(&(wait.get() / 1_000)), "{wait}");
    let allowed = (0..20).filter(|_| matches!(check(&mut region, 12_000), Verdict::Allow(_)));
    assert!(allowed.count() <= 10);
    denied(check(&mut region, 16_900));
    assert!(matches!(check(&mut region, 17_100), Verdict::Allow(_)));
}

#[test]
fn a_penalty_whose_message_is_lost_is_told_with_the_next() {
    let rules = strict();
    let mut region = Region::new(&rules, SEEDS);
    let [mut one, mut other] = [1, 2].map(|number| source(number, &rules, settings()));
    for second in 0..4 {
        region.serve(&mut one, at(second * 1_000));
        region.serve(&mut other, at(second * 1_000));
    }
    let query = query(&rules, "a");
    for _ in 0..40 {
        let verdict = one.decide(&query, at(3_100));
        if matches!(verdict, Verdict::Hold { .. }) {
            region.serve(&mut one, at(3_100));
        }
        if matches!(verdict, Verdict::Deny(_)) {
            break;
        }
    }
    while let Some(lost) = one.poll_send(at(3_101)) {
        one.handle_no_answer(lost.id, at(3_101));
    }
    region.serve(&mut one, at(4_000));
    region.serve(&mut other, at(4_001));
    denied(decide(&mut region, &mut other, 7_000));
}

#[test]
fn nobody_is_punished_because_the_region_was_away() {
    let mut rule = rule(10, 1_000, Algorithm::TokenBucket);
    rule.penalty = Micros::from_secs(3_600);
    rule.on_failure.no_lease = Fallback::Deny;
    rule.on_failure.lease_expired = Fallback::Deny;
    let rules = rules(1, vec![rule]);
    let mut region = Region::new(&rules, SEEDS);
    let mut limiter = source(1, &rules, settings());
    while let Some(lost) = limiter.poll_send(at(0)) {
        limiter.handle_no_answer(lost.id, at(0));
    }
    for ms in [100, 1_000, 2_000] {
        while let Some(lost) = limiter.poll_send(at(ms)) {
            limiter.handle_no_answer(lost.id, at(ms));
        }
    }
    let refused = limiter.decide(&query(&rules, "a"), at(2_100));
    assert_eq!(denied(refused).tier, Tier::Fallback);
    region.serve(&mut limiter, at(3_000));
    let verdict = decide(&mut region, &mut limiter, 3_001);
    assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
}

#[test]
fn a_penalty_that_is_taken_back_ends() {
    let (mut region, mut one, mut other) = exceeded();
    region.serve(&mut other, at(7_000));
    denied(decide(&mut region, &mut other, 7_001));
    let mild = rules(2, vec![rule(10, 1_000, Algorithm::TokenBucket)]);
    region.ledger.set_rules(mild, at(7_100), &mut region.log);
    for ms in [8_100, 9_200, 10_300] {
        region.serve(&mut one, at(ms));
        region.serve(&mut other, at(ms));
    }
    for limiter in [&mut one, &mut other] {
        let verdict = decide(&mut region, limiter, 10_400);
        assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
    }
}
