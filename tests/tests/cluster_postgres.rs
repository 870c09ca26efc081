//! Aggregators that share a PostgreSQL: killed and paused, what was added is there, and
//! once. Without Debian's `postgresql` on the machine it says so, and tries nothing.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that fails may panic"
)]

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_tests::aggregator::Aggregator;
use weir_tests::http::{self, request};
use weir_tests::postgres_server::Postgres;
use weir_tests::wait::wait_until;

const RULES: &str = "\
version: 1
domain: test
rules:
  - { name: three, key: header.x-key, limit: 3, window: 365d, algorithm: fixed_window }
";

const COUNTERS: u64 = 8;

/// The JSON of an answer; none if there is none, or it is not known what it means.
fn ask(member: SocketAddr, path: &str, body: &str) -> Option<serde_json::Value> {
    let answer = http::send(member, &request("POST", path, &[], body.as_bytes())).ok()?;
    let told = (answer.status == 200).then(|| answer.text())?;
    serde_json::from_str(&told).ok()
}

/// Adds one to each counter in turn, each add until it is answered, until told to end.
/// Returns how many there were.
fn add(members: &[SocketAddr], number: u64, done: &AtomicBool) -> u64 {
    let mut adds = 0;
    while !done.load(Ordering::Acquire) {
        let body = format!(
            r#"{{"counter_id":"c{}","idempotency_key":"{number}-{adds}"}}"#,
            adds % COUNTERS
        );
        let mut turns = members.iter().cycle();
        while ask(
            *turns.next().expect("a member"),
            "/v1/counter/increment",
            &body,
        )
        .is_none()
        {}
        adds += 1;
    }
    adds
}

fn signal(member: &Aggregator, signal: &str) {
    let id = member.process_id().expect("it runs").to_string();
    let sent = Command::new("kill").args([signal, &id]).status();
    assert!(sent.expect("kill runs").success());
}

fn owned(members: &[Mutex<Aggregator>]) -> u64 {
    let of = |member: &Mutex<Aggregator>| {
        let metrics = member.lock().expect("unpoisoned").metrics();
        metrics.map_or(0.0, |metrics| metrics.sum_or_zero("weir_groups_owned", &[]))
    };
    members.iter().map(of).sum::<f64>() as u64
}

#[test]
fn what_members_of_a_postgres_have_acknowledged_is_there_once_whatever_becomes_of_them() {
    let Some(store) = Postgres::start(200, "select 1") else {
        eprintln!("SKIPPED: there is no PostgreSQL here; install Debian's postgresql");
        return;
    };
    let url = format!(
        "postgres://postgres@{}/postgres?lease_ms=1000",
        store.address()
    );
    let arguments = ["--store", &url, "--snapshot-log-bytes", "65536"];
    let members: Vec<Mutex<Aggregator>> = (0..3)
        .map(|_| Mutex::new(Aggregator::start_with(RULES, &arguments)))
        .collect();
    let at = |n: usize| members[n].lock().expect("unpoisoned");
    let addresses: Vec<SocketAddr> = (0..3).map(|n| at(n).address()).collect();
    let check = |n: usize, key: &str| {
        let body = format!(r#"{{"rule":"three","key":"{key}"}}"#);
        ask(addresses[n % 3], "/v1/ratelimit/check", &body).expect("an answer")
    };
    for key in ["a", "b", "c", "d", "e"] {
        let allowed = (0..9).filter(|n| check(*n, key)["allowed"] == true).count();
        assert_eq!(allowed, 3, "{key}");
    }
    let done = AtomicBool::new(false);
    let adds: u64 = std::thread::scope(|scope| {
        let adding: Vec<_> = (0..3)
            .map(|n| {
                scope.spawn({
                    let (addresses, done) = (&addresses, &done);
                    move || add(addresses, n, done)
                })
            })
            .collect();
        // The moments are arbitrary: there is no condition to wait for.
        let a_while = || std::thread::sleep(Duration::from_millis(600));
        for victim in [0, 1, 2] {
            a_while();
            at(victim).restart();
            a_while();
            signal(&at(victim), "-STOP");
            // Longer than its lease.
            std::thread::sleep(Duration::from_millis(1_800));
            signal(&at(victim), "-CONT");
        }
        a_while();
        done.store(true, Ordering::Release);
        adding
            .into_iter()
            .map(|thread| thread.join().expect("it ends"))
            .sum()
    });
    wait_until("every group has an owner", || owned(&members) == 16);
    let value = |n: u64| {
        let path = format!("/v1/counter/c{n}");
        let answer = http::send(addresses[0], &http::get(&path, &[])).expect("an answer");
        let counter: serde_json::Value = serde_json::from_str(&answer.text()).expect("JSON");
        counter["value"].as_u64().expect("a number")
    };
    println!("{adds} adds were acknowledged");
    assert!(adds > 100, "too little happened");
    assert_eq!((0..COUNTERS).map(value).sum::<u64>(), adds);
    for key in ["a", "b", "c", "d", "e"] {
        assert_eq!(check(1, key)["allowed"], false, "{key}");
    }
}
