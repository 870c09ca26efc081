//! Counters and the disk: what is told when, and what when it takes no more.

use std::{sync::mpsc, thread, time::Duration};

use serde_json::json;

use crate::{
    common::client::{get, send, until},
    counters::{add, reset, value},
    server::Place,
};

/// Long enough for an answer that is not held back to arrive.
const A_WHILE: Duration = Duration::from_millis(150);

#[test]
fn nothing_is_told_of_a_counter_that_a_crash_could_take_back() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    add(to, &json!({"counter_id": "cold", "delta": 3}));
    server.gate.hold();
    let (tell, told) = mpsc::channel();
    let aside = tell.clone();
    let adding = thread::spawn(move || {
        let _ = aside.send(add(to, &json!({"counter_id": "hot", "delta": 5})).json());
    });
    server.gate.wait_for_sync();
    let reading = thread::spawn(move || {
        let _ = tell.send(get(to, "/v1/counter/hot").json());
    });
    assert!(told.recv_timeout(A_WHILE).is_err());
    // Another counter waits for nothing.
    assert_eq!(value(to, "cold"), Some(3));
    server.gate.open();
    for _ in 0..2 {
        assert_eq!(told.recv().unwrap()["value"], 5);
    }
    adding.join().unwrap();
    reading.join().unwrap();
}

#[test]
fn a_full_disk_lets_counters_be_read_and_counts_once_when_there_is_room() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    add(to, &json!({"counter_id": "a", "delta": 3}));
    server.gate.fill();
    let asked = json!({"counter_id": "b", "delta": 5, "idempotency_key": "k"});
    let kept = add(to, &asked);
    assert_eq!((kept.status, kept.problem().as_str()), (503, "unready"));
    assert!(kept.text().contains("is kept"), "{}", kept.text());
    for refused in [
        add(to, &json!({"counter_id": "a"})),
        reset(to, &json!({"counter_id": "a"})),
        send(to, "DELETE", "/v1/counter/a", b""),
        // It is not durable, so nobody is told.
        get(to, "/v1/counter/b"),
    ] {
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert!(refused.header("retry-after").is_some());
        assert!(refused.text().contains("no room"), "{}", refused.text());
    }
    assert_eq!(value(to, "a"), Some(3));
    server.gate.open();
    until("there is room", || get(to, "/readyz").status == 200);
    let again = add(to, &asked);
    assert_eq!(again.json()["value"], 5);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    server.stop();
    let server = place.start();
    assert_eq!(value(server.address, "a"), Some(3));
    assert_eq!(value(server.address, "b"), Some(5));
}

#[test]
fn an_add_too_many_is_refused_at_once_and_told_when_to_come_again() {
    let mut place = Place::new();
    place.settings.queue_requests_max = Some(1);
    let server = place.start();
    let to = server.address;
    server.gate.hold();
    let first = thread::spawn(move || add(to, &json!({"counter_id": "a"})).status);
    server.gate.wait_for_sync();
    let refused = add(to, &json!({"counter_id": "a"}));
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (503, "queue-full")
    );
    assert!(refused.header("retry-after").is_some());
    server.gate.open();
    assert_eq!(first.join().unwrap(), 200);
    assert_eq!(add(to, &json!({"counter_id": "a"})).json()["value"], 2);
}
