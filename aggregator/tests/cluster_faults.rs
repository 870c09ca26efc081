//! Members and stores that are killed, paused and drained under load, again and again:
//! what was acknowledged is counted, and counted once. Each takes a while;
//! `make test-cluster` runs them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking, and shares its helpers"
)]

mod common;

use std::{sync::Arc, thread, time::Duration};

use common::{
    client::{check, until},
    cluster::Cluster,
    random::Random,
    source::{Books, assert_books, under_load},
    valkey::Valkey,
};

const SOURCES: u64 = 4;

fn seed() -> u64 {
    let seed = std::env::var("WEIR_CRASH_SEED").map_or(20_264, |seed| seed.parse().unwrap());
    println!("WEIR_CRASH_SEED={seed}");
    seed
}

/// The moment is what is random: there is no condition to wait for.
fn a_while(random: &mut Random, millis: u64) {
    thread::sleep(Duration::from_millis(20 + random.below(millis)));
}

fn assert_held(cluster: &Cluster, books: &Books) {
    cluster.settle();
    let acked = books.values().sum::<u64>();
    assert!(acked > 200, "too little happened: {acked}");
    assert_books(cluster, books);
}

#[test]
#[ignore = "takes a minute: make test-cluster"]
fn every_acknowledged_flush_is_counted_once_however_often_members_are_killed() {
    let (seed, valkey) = (seed(), Valkey::start());
    let store = format!("redis://{}?lease_ms=1000", valkey.address);
    let cluster = Arc::new(Cluster::start(3, &store));
    let mut random = Random::new(seed);
    let books = under_load(&cluster, seed, SOURCES, || {
        for _ in 0..16 {
            let victim = usize::try_from(random.below(3)).unwrap();
            a_while(&mut random, 1_200);
            cluster.kill(victim);
            a_while(&mut random, 1_500);
            cluster.begin(victim);
        }
        cluster.settle();
    });
    assert_held(&cluster, &books);
}

#[test]
#[ignore = "takes a minute: make test-cluster"]
fn an_owner_that_is_paused_for_longer_than_its_lease_counts_nothing_twice() {
    let (seed, valkey) = (seed(), Valkey::start());
    let store = format!("redis://{}?lease_ms=1000", valkey.address);
    let cluster = Arc::new(Cluster::start(3, &store));
    let mut random = Random::new(seed);
    let mut lost = 0;
    let books = under_load(&cluster, seed, SOURCES, || {
        for round in 0..8 {
            let victim = usize::try_from(random.below(3)).unwrap();
            a_while(&mut random, 800);
            cluster.signal(victim, "-STOP");
            // Longer than its lease: the others take over meanwhile.
            thread::sleep(Duration::from_millis(1_200 + 150 * round));
            cluster.signal(victim, "-CONT");
            cluster.settle();
        }
        lost = cluster.sum("weir_fence_losses_total", "");
    });
    println!("{lost} groups were lost to others");
    assert!(lost > 0, "nobody was paused for long enough");
    assert_held(&cluster, &books);
}

#[test]
#[ignore = "takes a minute: make test-cluster"]
fn a_store_that_is_killed_and_started_again_loses_nothing_that_was_acknowledged() {
    let (seed, mut valkey) = (seed(), Valkey::start());
    let store = format!("redis://{}?lease_ms=1000", valkey.address);
    let cluster = Arc::new(Cluster::start(3, &store));
    let mut random = Random::new(seed);
    let books = under_load(&cluster, seed, SOURCES, || {
        for _ in 0..8 {
            a_while(&mut random, 1_200);
            valkey.kill();
            // Now for longer than a lease, now for less.
            a_while(&mut random, 2_500);
            valkey.go_on();
        }
        cluster.settle();
    });
    assert_held(&cluster, &books);
}

#[test]
#[ignore = "takes a minute: make test-cluster"]
fn what_a_replica_was_waited_for_with_survives_the_end_of_its_primary() {
    let seed = seed();
    for round in 0..3 {
        let (mut primary, replica) = (Valkey::start(), Valkey::start());
        replica.follow(&primary);
        let store = format!(
            "redis://{},{}?lease_ms=1000&wait=1&wait_ms=100",
            primary.address, replica.address
        );
        let cluster = Arc::new(Cluster::start(3, &store));
        let mut random = Random::new(seed ^ round);
        let mut third = None;
        let books = under_load(&cluster, seed, SOURCES, || {
            a_while(&mut random, 1_500);
            // What is written from here on is on the primary alone.
            replica.signal("-STOP");
            primary
                .call(&["CLIENT", "KILL", "TYPE", "replica"])
                .unwrap();
            a_while(&mut random, 500);
            primary.kill();
            replica.signal("-CONT");
            replica.call(&["REPLICAOF", "NO", "ONE"]).unwrap();
            // There is no other to wait for: go on with a new one.
            let next = Valkey::start();
            next.follow(&replica);
            cluster.settle();
            a_while(&mut random, 1_500);
            cluster.close();
            cluster.settle();
            third = Some(next);
        });
        assert_held(&cluster, &books);
        drop(third);
    }
}

#[test]
#[ignore = "takes a minute: make test-cluster"]
fn members_are_replaced_one_by_one_without_a_request_that_fails() {
    let (seed, valkey) = (seed(), Valkey::start());
    // Nobody would notice for a minute that one had gone without a word.
    let store = format!("redis://{}?lease_ms=60000", valkey.address);
    let cluster = Arc::new(Cluster::start(3, &store));
    let asked = |n: u64| serde_json::json!({"rule": "three", "key": [format!("k{n}"), "GET"]});
    let books = under_load(&cluster, seed, SOURCES, || {
        // The one that is asked stays, the others go and come back.
        let stays = cluster.address(0);
        for n in 0..6 {
            let goes = 1 + usize::try_from(n % 2).unwrap();
            thread::scope(|scope| {
                let draining = scope.spawn(|| cluster.drain(goes));
                let mut times = 0;
                while !draining.is_finished() || times < 20 {
                    let answer = check(stays, &asked(times % 40));
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    times += 1;
                }
            });
            cluster.begin(goes);
            cluster.settle();
        }
    });
    until("all are there", || cluster.addresses().len() == 3);
    assert_held(&cluster, &books);
}
