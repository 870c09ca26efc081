//! Rules that change while requests come: counts go on, leases do not.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::sync::Arc;

use common::{Region, SEEDS, at, counter, query, rule, rules, settings, source};
use limiter::{
    bound::{Fleet, Over},
    decision::Verdict,
    edge::Limiter,
    key::HashSeed,
    list::List,
    quota::Algorithm,
    rule::Condition,
    ruleset::RuleSet,
    time::Micros,
};
use prost::Message;

fn limited(revision: u64, limit: u64) -> Arc<RuleSet> {
    rules(
        revision,
        vec![rule(limit, 3_600_000, Algorithm::SlidingWindow)],
    )
}

fn admit(region: &mut Region, limiter: &mut Limiter, many: u64, from_ms: u64) -> u64 {
    let mut admitted = 0;
    for request in 0..many {
        let now = at(from_ms + request);
        let query = query(limiter.rules(), "a");
        let mut verdict = limiter.decide(&query, now);
        if matches!(verdict, Verdict::Hold { .. }) {
            region.serve(limiter, now);
            verdict = limiter.decide_held(&query, now, true);
        }
        admitted += u64::from(matches!(verdict, Verdict::Allow(_)));
        region.serve(limiter, now);
    }
    admitted
}

#[test]
fn a_limit_that_changes_keeps_the_count() {
    let before = limited(1, 100);
    let mut region = Region::new(&before, SEEDS);
    let mut limiter = source(1, &before, settings());
    assert_eq!(admit(&mut region, &mut limiter, 60, 4_000), 60);
    for flush in 5..8 {
        region.serve(&mut limiter, at(flush * 1_000));
    }
    region
        .ledger
        .set_rules(limited(2, 70), at(8_000), &mut region.log);
    for flush in 9..14 {
        region.serve(&mut limiter, at(flush * 1_000));
    }
    assert_eq!(admit(&mut region, &mut limiter, 60, 15_000), 10);
}

#[test]
fn a_lease_under_the_old_limit_is_recalled_within_a_flush_and_counts_until_then() {
    let before = limited(1, 1_000);
    let mut region = Region::new(&before, SEEDS);
    let mut limiter = source(1, &before, settings());
    admit(&mut region, &mut limiter, 100, 4_000);
    region.serve(&mut limiter, at(5_100));
    let key = counter(&before, "a");
    let lent = |region: &Region, ms| region.ledger.audit(0, key, at(ms)).unwrap().lent_micro;
    let held = lent(&region, 5_200);
    assert!(held > 0, "the source holds something");
    region
        .ledger
        .set_rules(limited(2, 100), at(5_200), &mut region.log);
    assert!(lent(&region, 5_201) >= held, "what is out still counts");
    region.serve(&mut limiter, at(6_200));
    let alone = Fleet {
        sources: 1,
        round_trip: Micros::ZERO,
        regions: 1,
        above: Micros::ZERO,
    };
    let over = Over::of(limited(2, 100).rule(0).unwrap(), alone).debt;
    let admitted = admit(&mut region, &mut limiter, 50, 6_300);
    assert!(
        admitted <= over,
        "{admitted} over a limit that is spent, {over} tolerated"
    );
}

/// A rule that leaves those alone whose keys are in a list.
fn listed(revision: u64, limit: u64, keys: &[&str]) -> Arc<RuleSet> {
    let keys = keys.iter().map(|key| key.as_bytes());
    let list = List::of_values("vip", HashSeed::default(), keys);
    let mut rule = rule(limit, 3_600_000, Algorithm::SlidingWindow);
    rule.when = vec![Condition::None(vec![vec![Condition::KeyIn(list.into())]])];
    rules(revision, vec![rule])
}

/// Answers all that a source says. Returns how many hashes of lists that took, if
/// rules were among it.
fn hashes_sent(region: &mut Region, limiter: &mut Limiter, now_ms: u64) -> Option<usize> {
    let mut sent = None;
    while let Some(outgoing) = limiter.poll_send(at(now_ms)) {
        let reply = region.sync(&outgoing, at(now_ms));
        if let Some(rules) = &reply.rules {
            sent = Some(rules.lists.iter().map(|list| list.hashes.len() / 8).sum());
        }
        let (id, body) = (outgoing.id, reply.encode_to_vec());
        limiter.handle_reply(id, &body, at(now_ms)).unwrap();
    }
    sent
}

#[test]
fn a_list_reaches_a_source_once_and_another_one_again() {
    let mut region = Region::new(&listed(1, 100, &["a", "b"]), SEEDS);
    let mut limiter = source(1, &Arc::new(RuleSet::empty()), settings());
    let applies = |limiter: &Limiter, key| !query(limiter.rules(), key).hits.is_empty();
    assert_eq!(hashes_sent(&mut region, &mut limiter, 1_000), Some(2));
    assert!(!applies(&limiter, "a") && applies(&limiter, "c"));
    let mut change = |rules, ms| {
        region.ledger.set_rules(rules, at(ms), &mut region.log);
        hashes_sent(&mut region, &mut limiter, ms + 1_000)
    };
    assert_eq!(change(listed(2, 70, &["b", "a"]), 2_000), Some(0));
    assert_eq!(change(listed(3, 70, &["c", "d", "e"]), 4_000), Some(3));
    assert!(applies(&limiter, "a") && !applies(&limiter, "c"));
}

#[test]
fn rules_with_lists_come_back_from_a_snapshot_and_from_the_log() {
    let rules = listed(1, 100, &["a", "b"]);
    let mut region = Region::new(&rules, SEEDS);
    let snapshot = region.snapshot();
    region.restart(&snapshot, 0);
    assert_eq!(**region.ledger.rules(), *rules);
    assert_eq!(region.ledger.rules().lists(), rules.lists());
    let mut region = Region::new(&rules, SEEDS);
    let kept = region.log.0.len();
    region.restart(&[], kept);
    assert_eq!(**region.ledger.rules(), *rules);
}
