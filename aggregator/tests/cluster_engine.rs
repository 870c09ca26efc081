//! What the shared store itself keeps, refuses and forgets, whoever asks: leases, fences,
//! appends that are sent twice, snapshots.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking, and shares its helpers"
)]

mod common;

use std::time::Duration;

use aggregator::{
    shared::{self, Append, Claim, Engine, EngineError, Link, List, Member, SharedLog},
    store::{Position, Replay, ReplayError},
};
use common::{client::until, valkey::Valkey};

const LEASE: Duration = Duration::from_secs(60);

fn engine(valkey: &Valkey) -> Box<dyn Engine> {
    let url = format!("redis://{}", valkey.address);
    shared::open(&url.parse().unwrap(), "test")
}

fn member(id: &str) -> Member {
    Member {
        id: id.to_owned(),
        url: format!("http://{id}"),
    }
}

fn append<'a>(after: u64, last: u64, entry: &'a [u8]) -> Append<'a> {
    Append { after, last, entry }
}

fn entries(engine: &mut dyn Engine) -> Vec<Vec<u8>> {
    engine.page(3, List::Log, 0).unwrap()
}

/// Keeps what it is given.
#[derive(Default, PartialEq, Debug)]
struct Kept {
    shards: Vec<(u32, u64, Vec<u8>)>,
    records: Vec<(u64, Vec<u8>)>,
}

impl Replay for Kept {
    fn shard(&mut self, shard: u32, contains: Position, bytes: &[u8]) -> Result<(), ReplayError> {
        self.shards.push((shard, contains.number(), bytes.to_vec()));
        Ok(())
    }

    fn record(&mut self, position: Position, record: &[u8]) -> Result<(), ReplayError> {
        self.records.push((position.number(), record.to_vec()));
        Ok(())
    }
}

fn open(valkey: &Valkey, claim: &Claim) -> (SharedLog, Kept) {
    let link = Link::new(engine(valkey), 3, claim.fence.clone());
    let mut kept = Kept::default();
    let log = SharedLog::open(link, claim, &mut kept).unwrap();
    (log, kept)
}

fn commit(log: &mut SharedLog) -> Result<(), EngineError> {
    let pending = log.start_commit()?.expect("something to commit");
    log.finish_commit(pending.run())
}

#[test]
fn a_group_has_one_owner_until_its_lease_ends_or_it_gives_it_back() {
    let valkey = Valkey::start();
    let (mut a, mut b) = (engine(&valkey), engine(&valkey));
    let soon = Duration::from_millis(200);
    let first = a.claim(3, &member("a"), 1, soon).unwrap().unwrap();
    assert!(b.claim(3, &member("b"), 2, soon).unwrap().is_none());
    let mut second = None;
    until("the lease ends", || {
        second = b.claim(3, &member("b"), 2, LEASE).unwrap();
        second.is_some()
    });
    let second = second.unwrap();
    assert_ne!(first.fence, second.fence);
    let view = a
        .beat(&member("a"), &[(3, first.fence.clone())], LEASE)
        .unwrap();
    assert_eq!(view.lost, [3]);
    assert_eq!(view.owners[3], Some(member("b")));
    // Who was fenced gives nothing back.
    a.release(3, &first.fence).unwrap();
    assert!(a.claim(3, &member("a"), 3, LEASE).unwrap().is_none());
    b.release(3, &second.fence).unwrap();
    assert!(a.claim(3, &member("a"), 3, LEASE).unwrap().is_some());
}

#[test]
fn members_are_known_until_they_leave_or_are_silent() {
    let valkey = Valkey::start();
    let (mut a, mut b) = (engine(&valkey), engine(&valkey));
    a.beat(&member("a"), &[], Duration::from_millis(150))
        .unwrap();
    let view = b.beat(&member("b"), &[], LEASE).unwrap();
    assert_eq!(view.members.len(), 2);
    until("the silent one is forgotten", || {
        b.beat(&member("b"), &[], LEASE).unwrap().members == [member("b")]
    });
    a.beat(&member("a"), &[], LEASE).unwrap();
    a.leave(&member("a")).unwrap();
    assert_eq!(
        b.beat(&member("b"), &[], LEASE).unwrap().members,
        [member("b")]
    );
}

#[test]
fn a_late_append_of_an_earlier_owner_is_refused() {
    let valkey = Valkey::start();
    let (mut a, mut b) = (engine(&valkey), engine(&valkey));
    let first = a.claim(3, &member("a"), 1, LEASE).unwrap().unwrap();
    a.append(3, &first.fence, append(0, 1, b"one")).unwrap();
    // It restarts, say, and claims what it had.
    let second = a.claim(3, &member("a"), 2, LEASE).unwrap().unwrap();
    assert_eq!(second.last, 1);
    let late = b.append(3, &first.fence, append(1, 2, b"late"));
    assert_eq!(late, Err(EngineError::Fenced));
    let late = b.put_snapshot(3, &first.fence, 0, b"late");
    assert_eq!(late, Err(EngineError::Fenced));
    let late = b.publish_snapshot(3, &first.fence, "late", 1);
    assert_eq!(late, Err(EngineError::Fenced));
    a.append(3, &second.fence, append(1, 2, b"two")).unwrap();
    assert_eq!(entries(&mut *a), [b"one".to_vec(), b"two".to_vec()]);
}

#[test]
fn an_append_that_is_sent_twice_is_on_record_once_and_none_leaves_a_gap() {
    let valkey = Valkey::start();
    let mut a = engine(&valkey);
    let claim = a.claim(3, &member("a"), 1, LEASE).unwrap().unwrap();
    for _ in 0..3 {
        a.append(3, &claim.fence, append(0, 2, b"one")).unwrap();
    }
    let gap = a.append(3, &claim.fence, append(3, 4, b"gap"));
    let (expected, found) = (3, 2);
    assert_eq!(gap, Err(EngineError::Gap { expected, found }));
    assert_eq!(entries(&mut *a), [b"one".to_vec()]);
}

#[test]
fn a_snapshot_takes_the_place_of_the_log_before_it_and_of_no_more() {
    let valkey = Valkey::start();
    let mut engine = engine(&valkey);
    let mut claim = || engine.claim(3, &member("a"), 1, LEASE).unwrap().unwrap();
    let (mut log, kept) = open(&valkey, &claim());
    assert_eq!(kept, Kept::default());
    log.append(&[b"o", b"ne"]).unwrap();
    log.append(&[b"two"]).unwrap();
    commit(&mut log).unwrap();
    let mut writer = log.begin_snapshot();
    let three = log.append(&[b"three"]).unwrap();
    writer.shard(3, three, b"1+2+3").unwrap();
    writer.shard(19, three, b"").unwrap();
    // It contains a record that is not in the store yet.
    let sealed = log.publish(writer.seal()).err().expect("too early");
    commit(&mut log).unwrap();
    let published = log.publish(sealed).ok().unwrap().run().unwrap();
    log.finish_publication(&published);
    log.append(&[b"four"]).unwrap();
    commit(&mut log).unwrap();
    let (mut again, kept) = open(&valkey, &claim());
    let shards = vec![(3, 3, b"1+2+3".to_vec()), (19, 3, Vec::new())];
    let records = vec![(3, b"three".to_vec()), (4, b"four".to_vec())];
    assert_eq!(kept, Kept { shards, records });
    assert_eq!(again.last().number(), 4);
    // The earlier one is an earlier owner now.
    log.append(&[b"late"]).unwrap();
    assert_eq!(commit(&mut log), Err(EngineError::Fenced));
    let mut writer = again.begin_snapshot();
    writer.shard(3, again.last(), b"1+2+3+4").unwrap();
    let published = again.publish(writer.seal()).ok().unwrap().run().unwrap();
    again.finish_publication(&published);
    let (_, kept) = open(&valkey, &claim());
    assert_eq!(kept.shards, [(3, 4, b"1+2+3+4".to_vec())]);
    assert_eq!(kept.records, []);
}

#[test]
fn what_was_not_answered_is_sent_again_and_is_on_record_once() {
    let mut valkey = Valkey::start();
    let claim = engine(&valkey).claim(3, &member("a"), 1, LEASE);
    let (mut log, _) = open(&valkey, &claim.unwrap().unwrap());
    log.append(&[b"one"]).unwrap();
    valkey.kill();
    let away = commit(&mut log).unwrap_err();
    assert!(away.is_transient(), "{away}");
    log.append(&[b"two"]).unwrap();
    valkey.go_on();
    commit(&mut log).unwrap();
    assert_eq!(log.durable().number(), 1);
    commit(&mut log).unwrap();
    let claim = engine(&valkey).claim(3, &member("a"), 2, LEASE);
    let (_, kept) = open(&valkey, &claim.unwrap().unwrap());
    assert_eq!(kept.records, [(1, b"one".to_vec()), (2, b"two".to_vec())]);
}

#[test]
fn without_the_replicas_that_were_asked_for_nothing_is_acknowledged() {
    let (primary, replica) = (Valkey::start(), Valkey::start());
    let url = format!("redis://{}?wait=1&wait_ms=50", primary.address);
    let mut engine = shared::open(&url.parse().unwrap(), "test");
    let claim = engine.claim(3, &member("a"), 1, LEASE).unwrap().unwrap();
    let alone = engine.append(3, &claim.fence, append(0, 1, b"one"));
    let (held, wanted) = (0, 1);
    assert_eq!(alone, Err(EngineError::Unreplicated { held, wanted }));
    replica.follow(&primary);
    until("the replica holds it", || {
        engine.append(3, &claim.fence, append(0, 1, b"one")).is_ok()
    });
    assert_eq!(entries(&mut *engine), [b"one".to_vec()]);
}
