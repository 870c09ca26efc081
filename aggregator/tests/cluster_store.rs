//! Several aggregators over one Valkey: what they promise while all is well, and when one
//! of them is killed.

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

use common::{
    client::{check, get, send, until},
    cluster::{Cluster, owned},
    source::{assert_books, under_load},
    valkey::Valkey,
};

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
    assert!(books.values().sum::<u64>() > 100, "too little happened");
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
