//! What a response changes of what its request has spent.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod common;

use std::sync::Arc;

use common::{Region, SEEDS, at, counter, query, rule, rules, settings, source};
use limiter::{
    decision::{Decision, Verdict},
    edge::{Answered, Limiter, Open},
    quota::Algorithm,
    rule::{Cost, Rule, Scope, StatusMatch},
    ruleset::RuleSet,
    wire::SyncRequest,
};
use prost::Message;

/// A response with this status, and this cost if it says one.
struct Response(u16, Option<u64>);

impl Answered for Response {
    fn status(&self) -> u16 {
        self.0
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        let cost = self.1.filter(|_| name == "x-cost")?;
        Some(cost.to_string().into_bytes())
    }
}

/// So many hits a minute, given back for a 5xx, and costing what the response says.
fn settled(limit: u64, algorithm: Algorithm) -> Rule {
    let mut rule = rule(limit, 60_000, algorithm);
    rule.refund = vec![StatusMatch::Class(5)];
    rule.cost = Cost::ResponseHeader {
        name: "x-cost".into(),
        max: 50,
        upfront: 2,
        default: 2,
    };
    rule
}

/// A region and its only source, which the region knows to be alone.
struct World {
    region: Region,
    source: Limiter,
    rules: Arc<RuleSet>,
}

impl World {
    fn new(rule: Rule) -> Self {
        let rules = rules(1, vec![rule]);
        let mut region = Region::new(&rules, SEEDS);
        let mut source = source(1, &rules, settings());
        for ms in [0, 1_000, 2_000, 3_000, 4_000] {
            region.serve(&mut source, at(ms));
        }
        Self {
            region,
            source,
            rules,
        }
    }

    fn verdict(&mut self, ms: u64) -> Verdict {
        let query = query(&self.rules, "a");
        let mut verdict = self.source.decide(&query, at(ms));
        if matches!(verdict, Verdict::Hold { .. }) {
            self.region.serve(&mut self.source, at(ms));
            verdict = self.source.decide_held(&query, at(ms), true);
        }
        verdict
    }

    /// An admitted request whose response is still to come.
    fn request(&mut self, ms: u64) -> Open {
        let verdict = self.verdict(ms);
        assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
        self.source.open(&query(&self.rules, "a"), at(ms)).unwrap()
    }

    fn denied(&mut self, ms: u64) -> Decision {
        match self.verdict(ms) {
            Verdict::Deny(decision) => decision,
            other => panic!("{other:?}"),
        }
    }

    fn close(&mut self, open: &Open, response: &Response, ms: u64) {
        self.source.close(open, response, at(ms));
    }

    fn serve(&mut self, ms: u64) {
        self.region.serve(&mut self.source, at(ms));
    }

    /// Hits in the books, and of these, hits given back.
    fn books(&self) -> (u64, u64) {
        let sum = |hits: Vec<(_, u64)>| hits.iter().map(|(_, hits)| hits).sum();
        let ledger = &self.region.ledger;
        (sum(ledger.hits_by_rule()), sum(ledger.returned_by_rule()))
    }

    /// Hits left by the books.
    fn left(&self, ms: u64) -> i64 {
        let key = counter(&self.rules, "a");
        let audit = self.region.ledger.audit(0, key, at(ms)).unwrap();
        audit.room_micro.div_euclid(1_000_000)
    }
}

#[test]
fn a_rule_without_a_second_phase_opens_nothing() {
    let mut world = World::new(rule(10, 60_000, Algorithm::FixedWindow));
    assert!(matches!(world.verdict(4_000), Verdict::Allow(_)));
    let query = query(&world.rules, "a");
    assert!(world.source.open(&query, at(4_000)).is_none());
}

#[test]
fn what_a_response_costs_more_is_spent_though_there_is_no_room_and_denies_the_next() {
    let mut world = World::new(settled(20, Algorithm::FixedWindow));
    let open = world.request(4_000);
    world.close(&open, &Response(200, Some(30)), 4_010);
    world.denied(4_020);
    world.serve(5_500);
    assert_eq!(world.books(), (30, 0));
    assert_eq!(world.left(5_500), -10);
    assert_eq!(world.denied(5_600).remaining, 0);
}

#[test]
fn what_a_response_costs_more_takes_a_grant_that_was_on_its_way_and_leaves_no_debt() {
    let mut world = World::new(settled(100, Algorithm::FixedWindow));
    let open = world.request(4_000);
    let flush = world.source.poll_send(at(5_100)).unwrap();
    world.close(&open, &Response(200, Some(40)), 5_101);
    let reply = world.region.sync(&flush, at(5_102)).encode_to_vec();
    world
        .source
        .handle_reply(flush.id, &reply, at(5_103))
        .unwrap();
    let next = world.source.decide(&query(&world.rules, "a"), at(5_104));
    assert!(matches!(next, Verdict::Hold { .. }), "{next:?}");
    world.serve(6_200);
    assert_eq!(world.books(), (40, 0));
    for request in 0..30 {
        drop(world.request(6_200 + request));
    }
    world.serve(7_300);
    assert_eq!(world.books(), (100, 0), "all that was left, and no more");
    world.denied(7_400);
}

#[test]
fn a_refund_of_what_was_not_reported_yet_is_in_no_report() {
    let mut world = World::new(settled(100, Algorithm::SlidingWindow));
    let kept = world.request(4_000);
    let given_back = world.request(4_001);
    world.close(&given_back, &Response(503, Some(9)), 4_002);
    world.close(&kept, &Response(200, None), 4_003);
    world.serve(5_500);
    assert_eq!(world.books(), (2, 0));
}

#[test]
fn a_lease_gets_the_tokens_back_that_were_not_reported() {
    let mut world = World::new(settled(10, Algorithm::FixedWindow));
    for request in 0..200 {
        let open = world.request(4_000 + request);
        world.close(&open, &Response(500, None), 4_000 + request);
    }
    world.serve(5_500);
    assert_eq!(world.books().0, world.books().1);
    let asked = world.source.stats(at(5_500)).asks;
    assert!(asked < 20, "{asked} asks for 200 requests");
}

#[test]
fn a_refund_of_what_was_reported_counts_once_however_often_it_is_sent() {
    for algorithm in [
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::TokenBucket,
    ] {
        let mut world = World::new(settled(100, algorithm));
        let open = world.request(4_000);
        let kept = world.request(4_000);
        world.close(&kept, &Response(200, Some(1)), 4_000);
        world.serve(5_500);
        assert_eq!(world.books(), (3, 0), "{algorithm:?}");
        world.close(&open, &Response(502, None), 5_600);
        let flush = world.source.poll_send(at(6_600)).unwrap();
        let sent = SyncRequest::decode(&*flush.body).unwrap();
        let group = sent.batches.first().unwrap().groups.first().unwrap();
        assert_eq!((&*group.hits, &*group.returned), (&[0][..], &[2][..]));
        world.region.sync(&flush, at(6_601));
        world.region.sync(&flush, at(6_602));
        assert_eq!(world.books(), (3, 2), "{algorithm:?}");
        if algorithm != Algorithm::TokenBucket {
            assert_eq!(world.left(6_602), 99, "{algorithm:?}");
        }
    }
}

#[test]
fn a_refund_changes_the_window_that_was_counted_in_and_no_other() {
    let mut world = World::new(settled(100, Algorithm::FixedWindow));
    let open = world.request(4_000);
    world.serve(5_500);
    let next = world.request(61_000);
    world.serve(62_000);
    assert_eq!(world.left(62_000), 98);
    world.close(&open, &Response(500, None), 62_100);
    world.serve(63_200);
    assert_eq!(world.left(63_200), 98, "its window has passed");
    assert_eq!(world.books(), (4, 2));
    world.close(&next, &Response(500, None), 63_300);
    world.serve(64_400);
    assert_eq!(world.left(64_400), 100);
}

#[test]
fn no_refund_makes_a_count_less_than_nothing() {
    let mut world = World::new(settled(100, Algorithm::FixedWindow));
    let open = world.request(4_000);
    world.serve(5_500);
    // A host that closes twice gives back twice.
    for ms in [5_600, 5_700] {
        world.close(&open, &Response(500, None), ms);
    }
    world.serve(6_800);
    assert_eq!(world.left(6_800), 100);
}

#[test]
fn refunds_are_still_in_the_books_after_a_restart_from_log_or_snapshot() {
    let mut world = World::new(settled(100, Algorithm::FixedWindow));
    let open = world.request(4_000);
    world.serve(5_500);
    world.close(&open, &Response(500, None), 5_600);
    let open = world.request(5_700);
    world.serve(6_800);
    let books = world.books();
    assert_eq!(books, (4, 2));
    let kept = world.region.log.0.len();
    world.region.restart(&[], kept);
    assert_eq!((world.books(), world.left(6_800)), (books, 98));
    let snapshot = world.region.snapshot();
    world.region.restart(&snapshot, kept);
    assert_eq!((world.books(), world.left(6_800)), (books, 98));
    drop(open);
}

#[test]
fn a_source_on_its_own_settles_by_its_own_count() {
    let mut rule = settled(10, Algorithm::SlidingWindow);
    rule.scope = Scope::Pop;
    let mut world = World::new(rule);
    for _ in 0..100 {
        let open = world.request(4_000);
        world.close(&open, &Response(500, None), 4_000);
    }
    let open = world.request(4_000);
    world.close(&open, &Response(200, Some(50)), 4_000);
    world.denied(4_000);
    world.serve(5_500);
    assert_eq!(world.books(), (0, 0), "the region has no part in it");
}

#[test]
fn a_response_under_rules_that_count_anew_changes_nothing() {
    let mut world = World::new(settled(100, Algorithm::FixedWindow));
    let open = world.request(4_000);
    world.serve(5_500);
    let mut longer = settled(100, Algorithm::FixedWindow);
    longer.quota.window =
        limiter::window::Window::new(limiter::time::Micros::from_secs(90)).unwrap();
    let anew = rules(2, vec![longer]);
    world.source.set_rules(Arc::clone(&anew));
    world.close(&open, &Response(500, None), 5_600);
    world.close(&open, &Response(200, Some(9)), 5_600);
    world.serve(6_700);
    assert_eq!(world.books(), (2, 0));
}

#[test]
fn a_wait_is_no_shorter_than_the_books_have_no_room_for() {
    for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingWindow] {
        let mut world = World::new(rule(10, 60_000, algorithm));
        for request in 0..10 {
            let verdict = world.verdict(4_000 + request);
            assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
        }
        world.serve(5_500);
        world.denied(5_600);
        world.serve(6_700);
        let wait = world.denied(6_800).retry_after.unwrap();
        // Nothing becomes free before the window ends.
        let left = at(60_000).since(at(6_800));
        assert!(wait >= left, "{algorithm:?}: {wait}, {left} are left");
    }
}
