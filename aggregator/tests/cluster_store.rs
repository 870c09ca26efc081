//! Several aggregators over one Valkey: what they promise while all is well, when one
//! of them is killed, and what the store itself refuses.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking, and shares its helpers"
)]

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::Arc,
    thread,
    time::Duration,
};

use aggregator::{
    shared::{self, Append, Claim, Engine, EngineError, Link, List, Member, SharedLog},
    store::{Position, Replay, ReplayError},
};
use common::{
    client::{check, get, send, until},
    cluster::{Cluster, owned},
    source::{assert_books, under_load},
    valkey::Valkey,
};

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

#[test]
fn a_limit_holds_whichever_member_is_asked_and_any_may_be_killed() {
    let valkey = Valkey::start();
    let store = format!("redis://{}?lease_ms=1000", valkey.address);
    let cluster = Arc::new(Cluster::start(3, &store));
    let allowed = |member, key: &str| {
        let asked = serde_json::json!({"rule": "three", "key": [key, "GET"]});
        check(member, &asked).json()["allowed"] == true
    };
    for key in ["a", "b", "c", "d"] {
        let members = cluster.addresses().into_iter().cycle().take(9);
        let times = members.filter(|member| allowed(*member, key)).count();
        assert_eq!(times, 3, "{key}");
    }
    let books = under_load(&cluster, 7, 3, || {
        thread::sleep(Duration::from_millis(700));
        cluster.kill(0);
        thread::sleep(Duration::from_millis(1_500));
        cluster.begin(0);
        thread::sleep(Duration::from_millis(700));
    });
    cluster.settle();
    assert!(books.values().sum::<u64>() > 1_000, "too little happened");
    assert_books(&cluster, &books);
    for key in ["a", "b", "c", "d"] {
        assert!(
            !cluster
                .addresses()
                .into_iter()
                .any(|member| allowed(member, key))
        );
    }
}

#[test]
fn counters_and_rules_are_the_regions_whichever_member_is_asked() {
    let valkey = Valkey::start();
    let cluster = Cluster::start(2, &format!("redis://{}", valkey.address));
    let members = cluster.addresses();
    for n in 0..16 {
        let body = format!("{{\"counter_id\":\"c{n}\",\"idempotency_key\":\"k\"}}");
        for member in &members {
            let told = send(*member, "POST", "/v1/counter/increment", body.as_bytes());
            assert_eq!(told.json()["value"], 1, "{}", told.text());
            assert_eq!(
                get(*member, &format!("/v1/counter/c{n}")).json()["value"],
                1
            );
        }
    }
    assert_eq!(cluster.sum("weir_counters", ""), 16);
    assert_eq!(
        get(members[0], "/v1/rules").text(),
        get(members[1], "/v1/rules").text()
    );
    for member in members {
        let backup = get(member, "/v1/backup");
        assert_eq!(
            (backup.status, backup.problem().as_str()),
            (501, "shared-store")
        );
    }
}

#[test]
fn adds_to_counters_of_several_members_are_told_each_in_its_place() {
    let valkey = Valkey::start();
    let cluster = Cluster::start(3, &format!("redis://{}", valkey.address));
    let member = cluster.address(0);
    let add = |n: usize| serde_json::json!({"counter_id": format!("m{}", n % 40), "delta": n});
    let adds: Vec<_> = (0..80).map(add).collect();
    let body = serde_json::json!({"adds": adds}).to_string();
    let told = send(member, "POST", "/v1/counter/increment", body.as_bytes());
    let told = told.json();
    for n in 0..80_usize {
        let value = if n < 40 { n } else { 2 * n - 40 };
        assert_eq!(told["results"][n]["value"], value, "{n}: {told}");
        assert_eq!(told["results"][n]["counter_id"], format!("m{}", n % 40));
    }
}

#[test]
fn a_request_under_rules_of_several_members_spends_from_all_or_from_none() {
    let valkey = Valkey::start();
    let cluster = Cluster::start(3, &format!("redis://{}", valkey.address));
    for key in ["p", "q", "r", "s"] {
        let request = serde_json::json!({"path": "/", "headers": {"x-key": key}});
        let asked = serde_json::json!({ "request": request });
        let members = cluster.addresses().into_iter().cycle().take(6);
        let answers: Vec<_> = members.map(|member| check(member, &asked).json()).collect();
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!(answer["allowed"], n < 3, "{answer}");
            assert_eq!(answer["rule"], "three", "{answer}");
        }
        let named = serde_json::json!({"rule": "wide", "key": key});
        let left = check(cluster.address(1), &named).json()["remaining"].clone();
        assert_eq!(left, 1_000_000_000_u64 - 3 - 1, "{key}");
    }
}

#[test]
fn a_counter_is_watched_through_a_member_that_does_not_have_it() {
    let valkey = Valkey::start();
    let cluster = Cluster::start(2, &format!("redis://{}", valkey.address));
    let members = cluster.addresses();
    let mut events: Vec<_> = members
        .iter()
        .map(|member| {
            let mut stream = TcpStream::connect(member).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let request = b"GET /v1/counter/w/watch HTTP/1.1\r\nhost: test\r\n\r\n";
            stream.write_all(request).unwrap();
            BufReader::new(stream).lines()
        })
        .collect();
    let mut next = |watch: usize| {
        let mut data = events[watch].by_ref().map(Result::unwrap);
        data.find(|line| line.starts_with("data:")).unwrap()
    };
    assert!(next(0).contains("null") && next(1).contains("null"));
    let added = send(
        members[0],
        "POST",
        "/v1/counter/increment",
        b"{\"counter_id\":\"w\"}",
    );
    assert_eq!(added.status, 200);
    assert!(next(0).contains("\"value\":1") && next(1).contains("\"value\":1"));
}

#[test]
fn a_member_that_is_ended_hands_over_before_it_goes() {
    let valkey = Valkey::start();
    // Nobody would notice for a minute.
    let store = format!("redis://{}?lease_ms=60000", valkey.address);
    let cluster = Cluster::start(2, &store);
    cluster.drain(0);
    let left = cluster.address(1);
    until("the other has them all", || owned(left) == 16);
    let answer = check(left, &serde_json::json!({"rule": "wide", "key": "k"}));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn a_member_without_its_store_says_that_it_is_not_ready() {
    let mut valkey = Valkey::start();
    let cluster = Cluster::start(1, &format!("redis://{}", valkey.address));
    let member = cluster.address(0);
    valkey.kill();
    until("it is not ready", || {
        let ready = get(member, "/readyz");
        ready.status == 503 && ready.text().contains("the shared store cannot be reached")
    });
    valkey.go_on();
    until("it is ready again", || get(member, "/readyz").status == 200);
}
