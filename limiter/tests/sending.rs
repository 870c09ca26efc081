//! When a source speaks: at once, at its own beat, and sooner where it has to.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod common;

use std::sync::Arc;

use common::{Region, SEEDS, at, query, rule, rules, settings, source};
use limiter::{
    decision::Verdict,
    edge::{Limiter, Outgoing},
    quota::Algorithm,
    ruleset::RuleSet,
    wire::SyncRequest,
};
use prost::Message;

fn window_of(ms: u64) -> Arc<RuleSet> {
    rules(1, vec![rule(100, ms, Algorithm::SlidingWindow)])
}

/// A region and a source that has known it for five seconds, and has just admitted
/// a request.
fn busy(rules: &Arc<RuleSet>) -> (Region, Limiter) {
    let mut region = Region::new(rules, SEEDS);
    let mut limiter = source(1, rules, settings());
    for second in 0..6 {
        region.serve(&mut limiter, at(second * 1_000));
    }
    region.serve(&mut limiter, at(5_005));
    request(&mut region, &mut limiter, 5_010);
    (region, limiter)
}

fn request(region: &mut Region, limiter: &mut Limiter, ms: u64) {
    let query = query(limiter.rules(), "a");
    if matches!(limiter.decide(&query, at(ms)), Verdict::Hold { .. }) {
        region.serve(limiter, at(ms));
        let verdict = limiter.decide_held(&query, at(ms), true);
        assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
    }
    region.serve(limiter, at(ms));
}

fn hits(outgoing: &Outgoing) -> u64 {
    let request = SyncRequest::decode(outgoing.body.as_slice()).unwrap();
    let groups = request.batches.iter().flat_map(|batch| &batch.groups);
    groups.flat_map(|group| &group.hits).sum()
}

#[test]
fn a_source_says_hello_at_once_and_then_keeps_to_a_beat_of_its_own() {
    let rules = window_of(60_000);
    let mut region = Region::new(&rules, SEEDS);
    let beats = [1, 400_000].map(|number| {
        let mut limiter = source(number, &rules, settings());
        assert!(limiter.poll_send(at(0)).is_some());
        region.serve(&mut limiter, at(2_000));
        region.serve(&mut limiter, at(3_500));
        limiter.poll_timeout()
    });
    assert_eq!(beats.map(|beat| beat.as_micros() % 1_000_000), [1, 400_000]);
}

#[test]
fn what_flows_back_within_a_second_is_reported_before_it_is_over() {
    let (_, mut short) = busy(&window_of(1_000));
    assert!(short.poll_timeout() <= at(5_200));
    let report = short.poll_send(at(5_200)).unwrap();
    assert_eq!(hits(&report), 1);
    let (_, mut long) = busy(&window_of(60_000));
    assert!(long.poll_timeout() > at(5_900));
    assert_eq!(long.poll_send(at(5_200)), None);
}

#[test]
fn a_question_that_is_overdue_is_asked_again() {
    let rules = window_of(60_000);
    let mut region = Region::new(&rules, SEEDS);
    let mut limiter = source(1, &rules, settings());
    for second in 0..6 {
        region.serve(&mut limiter, at(second * 1_000));
    }
    let query = query(&rules, "b");
    let mut asked = |ms| {
        // What a source may admit unasked comes first.
        for _ in 0..4 {
            if matches!(limiter.decide(&query, at(ms)), Verdict::Hold { .. }) {
                break;
            }
        }
        std::iter::from_fn(|| limiter.poll_send(at(ms))).count()
    };
    assert_eq!(asked(5_100), 1, "lost");
    assert_eq!(asked(5_101), 0, "it may still come");
    assert_eq!(asked(5_110), 1, "it does not");
}

/// A claim overtook the batch that had the same hits, since it waits for no disk. The
/// region had counted them and was told of them once more, had nothing left to lend,
/// and the source turned away what was left of the limit for a second. It now waits
/// for the batch's acknowledgement, and asks again.
#[test]
fn a_hit_that_is_left_is_admitted_though_its_claim_crosses_a_batch() {
    let rules = rules(1, vec![rule(3, 60_000, Algorithm::FixedWindow)]);
    let (mut region, mut limiter) = busy(&rules);
    request(&mut region, &mut limiter, 5_020);
    let asked = query(limiter.rules(), "a");
    limiter.flush_now();
    let flush = limiter.poll_send(at(5_030)).unwrap();
    assert_eq!(hits(&flush), 2);
    let acknowledged = region.sync(&flush, at(5_030)).encode_to_vec();
    let holds = |verdict| matches!(verdict, Verdict::Hold { .. });
    assert!(holds(limiter.decide(&asked, at(5_031))));
    let ask = limiter.poll_send(at(5_031)).unwrap();
    let short = region.sync(&ask, at(5_031)).encode_to_vec();
    limiter.handle_reply(ask.id, &short, at(5_031)).unwrap();
    assert!(holds(limiter.decide_held(&asked, at(5_031), false)));
    assert_eq!(
        limiter.poll_send(at(5_031)),
        None,
        "asking is of no use yet"
    );
    limiter
        .handle_reply(flush.id, &acknowledged, at(5_033))
        .unwrap();
    assert!(holds(limiter.decide_held(&asked, at(5_033), false)));
    region.serve(&mut limiter, at(5_033));
    let verdict = limiter.decide_held(&asked, at(5_033), false);
    assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
    region.serve(&mut limiter, at(5_034));
    let one_more = limiter.decide(&asked, at(5_035));
    let one_more = match one_more {
        Verdict::Hold { .. } => {
            region.serve(&mut limiter, at(5_035));
            limiter.decide_held(&asked, at(5_035), true)
        }
        verdict => verdict,
    };
    assert!(matches!(one_more, Verdict::Deny(_)), "{one_more:?}");
}
