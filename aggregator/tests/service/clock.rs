//! A machine's clock that jumps an hour: nothing is lost, and nothing counted twice.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    common::client::{check, get, until},
    counters::{add, value},
    server::Place,
};

const HOUR: i64 = 3_600;

/// When a counter ends that is given a minute now, in seconds.
fn a_minute_from_now(to: SocketAddr) -> i64 {
    add(to, &json!({"counter_id": "probe", "ttl_s": 60}));
    let told = get(to, "/v1/counter/probe").json();
    told["expires_at"].as_i64().unwrap()
}

fn add_once(to: SocketAddr) -> (Value, bool) {
    let asked = json!({"counter_id": "once", "delta": 5, "idempotency_key": "k"});
    let told = add(to, &asked);
    let replayed = told.header("idempotent-replayed").is_some();
    (told.json()["value"].clone(), replayed)
}

#[test]
fn a_clock_that_jumps_ahead_and_back_doubles_no_add_and_ends_nothing_for_ever() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    assert_eq!(add_once(to), (json!(5), false));
    add(to, &json!({"counter_id": "short", "ttl_s": HOUR / 2}));
    add(to, &json!({"counter_id": "long", "ttl_s": 2 * HOUR}));
    let before = a_minute_from_now(to);
    place.set_clock_ahead_s(HOUR);
    // What should have ended within the hour has, early; nothing else.
    assert_eq!((value(to, "short"), value(to, "long")), (None, Some(1)));
    assert_eq!(add_once(to), (json!(5), true));
    let ahead = a_minute_from_now(to);
    assert!((before + HOUR..before + HOUR + 60).contains(&ahead));
    // Back again: the region waits for the machine, and goes on counting.
    place.set_clock_ahead_s(0);
    assert!(a_minute_from_now(to) >= ahead);
    assert_eq!(add_once(to), (json!(5), true));
    assert_eq!((value(to, "short"), value(to, "long")), (None, Some(1)));
    place.set_clock_ahead_s(-HOUR);
    assert!(a_minute_from_now(to) >= ahead);
    assert_eq!(add(to, &json!({"counter_id": "long"})).json()["value"], 2);
}

#[test]
fn the_region_s_clock_does_not_go_back_over_a_restart_nor_over_its_snapshots() {
    let mut place = Place::new();
    place.settings.snapshot_log_bytes = Some(4_096);
    place.set_clock_ahead_s(HOUR);
    let server = place.start();
    let told = a_minute_from_now(server.address);
    add(server.address, &json!({"counter_id": "a", "ttl_s": 1}));
    until("it ends", || value(server.address, "a").is_none());
    server.stop();
    place.set_clock_ahead_s(0);
    for _ in 0..2 {
        let server = place.start();
        let to = server.address;
        assert!(a_minute_from_now(to) >= told);
        until("a snapshot holds all of it", || {
            add(to, &json!({"counter_id": "b"}));
            crate::common::client::metric(to, "weir_snapshots_total", "") >= 1
        });
        server.stop();
    }
}

#[test]
fn a_window_does_not_come_back_when_the_clock_does() {
    let place = Place::new();
    place.write_rules(
        "version: 1\ndomain: test\nrules:\n\
         - { name: hourly, limit: 1, window: 1h, algorithm: fixed_window }\n",
    );
    let server = place.start();
    let allowed = || check(server.address, &json!({"rule": "hourly"})).json()["allowed"].clone();
    assert_eq!([allowed(), allowed()], [true, false]);
    place.set_clock_ahead_s(HOUR);
    assert_eq!([allowed(), allowed()], [true, false]);
    place.set_clock_ahead_s(0);
    assert_eq!(allowed(), false);
}
