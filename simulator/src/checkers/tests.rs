//! Each checker notices the fault that it is there for.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::{num::NonZeroU64, rc::Rc, sync::Arc};

use limiter::{
    bound::Fleet,
    key::CounterKey,
    quota::{Algorithm, Quota},
    request::Query,
    rule::Rule,
    ruleset::RuleSet,
    time::Micros,
    window::Window,
    wire::{Ack, Batch, ClaimGroup, CountGroup, LeaseGroup, SyncReply, SyncRequest, ack::Status},
};

use super::*;
use crate::{
    disk::{self, Disk},
    plan::{self, Asked},
};

const LIMIT: u64 = 10;

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + second * 1_000)
}

fn rules() -> Arc<RuleSet> {
    let window = Window::new(Micros::from_secs(3_600)).unwrap();
    let quota = Quota::new(
        NonZeroU64::new(LIMIT).unwrap(),
        window,
        Algorithm::SlidingWindow,
    );
    plan::ruleset(vec![Rule::new("checked", quota)]).unwrap()
}

fn query() -> Query {
    rules().resolve(&Asked { path: "/", key: "" })
}

fn key() -> CounterKey {
    query().hits.first().unwrap().key
}

struct World {
    ledger: Ledger,
    disk: Disk,
}

impl World {
    fn new() -> Self {
        let (mut ledger, mut disk) = (disk::ledger(), Disk::new(Micros::ZERO));
        ledger.set_rules(rules(), at(0), disk.at(at(0)));
        Self { ledger, disk }
    }

    /// A message that counts so many hits and asks for as many.
    fn request(source: u64, sequence: u64, hits: u64, wanted: u64) -> SyncRequest {
        let rule = rules().id(0).unwrap().0;
        let keys = key().to_bytes().to_vec();
        let count = CountGroup {
            rule,
            keys: keys.clone().into(),
            hits: vec![hits],
            ..CountGroup::default()
        };
        let claim = ClaimGroup {
            rule,
            keys: keys.into(),
            wanted: vec![wanted],
            waiting: vec![wanted],
            offered: vec![wanted],
            ..ClaimGroup::default()
        };
        SyncRequest {
            source,
            message: sequence,
            rules_revision: 1,
            batches: vec![Batch {
                partition: key().partition(),
                epoch: 1,
                sequence,
                groups: vec![count],
            }],
            claims: vec![claim],
            ..SyncRequest::default()
        }
    }

    /// What the ledger makes of it.
    fn sync(&mut self, request: SyncRequest, second: u64) -> Synced {
        let now = at(second);
        let message = self
            .ledger
            .sync(request.clone(), now, self.disk.at(now))
            .expect("a message that is well-formed");
        synced(request, message, now)
    }
}

fn synced(request: SyncRequest, message: SyncReply, leaves_at: Timestamp) -> Synced {
    let body = Vec::new();
    Synced {
        request,
        reply: Rc::new(Reply { message, body }),
        leaves_at,
    }
}

fn acknowledged(request: &SyncRequest, status: Status) -> SyncReply {
    let batch = request.batches.first().unwrap();
    SyncReply {
        acks: vec![Ack {
            partition: batch.partition,
            sequence: batch.sequence,
            status: status.into(),
            expected: 0,
        }],
        ..SyncReply::default()
    }
}

#[test]
fn an_acknowledged_hit_that_is_in_no_book_is_noticed() {
    let (world, mut books) = (World::new(), Books::default());
    let request = World::request(1, 1, 3, 0);
    let reply = acknowledged(&request, Status::Counted);
    let error = books.synced(&synced(request, reply, at(1)), &world.ledger);
    assert!(error.unwrap_err().contains("misses 3"));
}

#[test]
fn a_hit_that_is_counted_without_a_word_is_noticed() {
    let (mut world, mut books) = (World::new(), Books::default());
    let synced = world.sync(World::request(1, 1, 3, 0), 1);
    books.synced(&synced, &world.ledger).unwrap();
    world.sync(World::request(1, 2, 4, 0), 2);
    let error = books.compare(&world.ledger).unwrap_err();
    assert!(error.contains("4 more than once"), "{error}");
}

#[test]
fn a_batch_that_is_counted_twice_is_noticed() {
    let (mut world, mut books) = (World::new(), Books::default());
    let request = World::request(1, 1, 3, 0);
    let first = world.sync(request.clone(), 1);
    books.synced(&first, &world.ledger).unwrap();
    let again = synced(
        request.clone(),
        acknowledged(&request, Status::Counted),
        at(2),
    );
    let error = books.synced(&again, &world.ledger).unwrap_err();
    assert!(error.contains("counted twice"), "{error}");
}

#[test]
fn a_batch_that_is_sent_again_with_other_hits_is_noticed() {
    let (mut world, mut books) = (World::new(), Books::default());
    let first = world.sync(World::request(1, 1, 3, 0), 1);
    books.synced(&first, &world.ledger).unwrap();
    let other = world.sync(World::request(1, 1, 4, 0), 2);
    assert!(books.synced(&other, &world.ledger).is_err());
}

/// A message that gives so many hits back.
fn giving_back(source: u64, sequence: u64, hits: u64) -> SyncRequest {
    let mut request = World::request(source, sequence, 0, 0);
    for group in request.batches.iter_mut().flat_map(|one| &mut one.groups) {
        group.returned = vec![hits];
    }
    request
}

#[test]
fn a_refund_that_is_in_no_book_or_is_there_twice_is_noticed() {
    let (mut world, mut books) = (World::new(), Books::default());
    let counted = world.sync(World::request(1, 1, 5, 0), 1);
    books.synced(&counted, &world.ledger).unwrap();
    let request = giving_back(1, 2, 3);
    let lost = synced(
        request.clone(),
        acknowledged(&request, Status::Counted),
        at(2),
    );
    let error = books.synced(&lost, &world.ledger).unwrap_err();
    assert!(error.contains("misses 3"), "{error}");
    world.sync(request, 3);
    books.compare(&world.ledger).unwrap();
    world.sync(giving_back(1, 3, 2), 4);
    let error = books.compare(&world.ledger).unwrap_err();
    assert!(error.contains("2 more than once"), "{error}");
}

#[test]
fn a_refund_that_is_spent_twice_is_noticed() {
    let fleet = Fleet {
        sources: 20,
        round_trip: Micros::ZERO,
        regions: 1,
        above: Micros::ZERO,
    };
    let mut windows = Windows::new(fleet);
    let query = query();
    let (hit, rules) = (*query.hits.first().unwrap(), rules());
    let rule = rules.rule(0).unwrap();
    for _ in 0..LIMIT + 2 {
        windows.admitted(&query, at(1)).unwrap();
    }
    windows.settled(rule, &hit, 0, at(1), at(2));
    windows.admitted(&query, at(3)).unwrap();
    assert!(windows.admitted(&query, at(3)).is_err());
}

#[test]
fn a_response_that_nobody_waits_for_is_noticed() {
    let mut plain = rules().rule(0).unwrap().clone();
    plain.refund = vec![limiter::rule::StatusMatch::Class(5)];
    let heeding = plan::ruleset(vec![plain]).unwrap();
    let mut checkers = Checkers::new(&crate::setup::Setup::sample());
    checkers.opened(&query(), None);
    assert_eq!(checkers.tally.unopened, 0, "no rule cares");
    let heeded = heeding.resolve(&Asked { path: "/", key: "" });
    checkers.opened(&heeded, None);
    assert_eq!(checkers.tally.unopened, 1);
}

#[test]
fn more_lent_than_is_left_is_noticed() {
    let (mut world, mut limits) = (World::new(), Limits::default());
    let lent = world.sync(World::request(1, 1, 0, 6), 5);
    limits.synced(&lent, &world.ledger, at(5)).unwrap();
    // Somebody spends what is lent to another.
    let mut spent = world.sync(World::request(2, 1, LIMIT, 0), 6);
    let mut message = spent.reply.message.clone();
    message.leases = vec![LeaseGroup {
        rule: rules().id(0).unwrap().0,
        keys: key().to_bytes().to_vec().into(),
        tokens_micro: vec![1_000_000],
        ..LeaseGroup::default()
    }];
    spent.reply = Rc::new(Reply {
        message,
        body: Vec::new(),
    });
    let error = limits.synced(&spent, &world.ledger, at(6)).unwrap_err();
    assert!(error.contains("lent"), "{error}");
}

#[test]
fn a_lease_that_is_spent_after_its_end_or_was_never_given_is_noticed() {
    let mut leases = Leases::default();
    assert!(leases.spent(0, key(), at(1)).is_some());
    let message = SyncReply {
        message: 1,
        sent_at_us: at(1).as_micros(),
        leases: vec![LeaseGroup {
            keys: key().to_bytes().to_vec().into(),
            ttl_ms: vec![2_000],
            ..LeaseGroup::default()
        }],
        ..SyncReply::default()
    };
    let first = message.clone();
    let mut request = World::request(1, 1, 0, 1);
    leases.claimed(0, &request);
    leases.granted(
        0,
        &Reply {
            message,
            body: Vec::new(),
        },
    );
    assert_eq!(leases.spent(0, key(), at(3)), None);
    assert!(leases.spent(0, key(), at(4)).is_some());
    assert!(leases.spent(1, key(), at(2)).is_some(), "another source's");
    request.message = 2;
    leases.claimed(0, &request);
    let mut late = first;
    late.sent_at_us = at(3).as_micros();
    leases.granted(
        0,
        &Reply {
            message: late,
            body: Vec::new(),
        },
    );
    assert!(
        leases.spent(0, key(), at(4)).is_some(),
        "an answer too late"
    );
}

#[test]
fn a_window_that_admits_more_than_its_bound_is_noticed() {
    let fleet = Fleet {
        sources: 20,
        round_trip: Micros::ZERO,
        regions: 1,
        above: Micros::ZERO,
    };
    let mut windows = Windows::new(fleet);
    let admit = |windows: &mut Windows| windows.admitted(&query(), at(1));
    // The limit, nothing tolerated of one so small, and two for the clocks.
    for _ in 0..LIMIT + 2 {
        admit(&mut windows).unwrap();
    }
    assert!(admit(&mut windows).is_err());
}

#[test]
fn too_many_keys_are_noticed_wherever_they_are() {
    let setup = crate::setup::Setup::sample();
    let mut checkers = Checkers::new(&setup);
    checkers.memory(0, setup.keys_max as u64, at(1));
    checkers.ledger(1, 1, at(1));
    assert_eq!(checkers.violations.count, 0);
    checkers.memory(0, setup.keys_max as u64 + 1, at(1));
    checkers.ledger(2, 1, at(1));
    assert_eq!(checkers.violations.count, 2);
}
