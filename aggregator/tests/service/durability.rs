//! What may be told when: an answer never precedes the commit it rests on.

use std::{net::SocketAddr, sync::mpsc, thread, time::Duration};

use limiter::wire::{SyncReply, SyncRequest, ack::Status};
use serde_json::json;

use crate::{
    common::{
        client::{check, get, metric, sync, until},
        messages::{ask, flush},
    },
    server::Place,
};

/// Long enough for an answer that is not held back to arrive.
const A_WHILE: Duration = Duration::from_millis(150);

fn send_aside(to: SocketAddr, message: SyncRequest) -> mpsc::Receiver<SyncReply> {
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || drop(answer.send(sync(to, &message).reply())));
    answered
}

#[test]
fn a_flush_is_not_acknowledged_before_it_is_synced_nor_is_its_duplicate() {
    let place = Place::new();
    let server = place.start();
    server.gate.hold();
    let first = send_aside(server.address, flush(1, "a", 5));
    server.gate.wait_for_sync();
    let again = send_aside(server.address, flush(1, "a", 5));
    assert!(first.recv_timeout(A_WHILE).is_err());
    assert!(again.recv_timeout(A_WHILE).is_err());
    server.gate.open();
    assert_eq!(first.recv().unwrap().acks[0].status(), Status::Counted);
    assert_eq!(again.recv().unwrap().acks[0].status(), Status::Duplicate);
}

#[test]
fn a_source_that_only_asks_waits_for_no_disk() {
    let place = Place::new();
    let server = place.start();
    server.gate.hold();
    let flushed = send_aside(server.address, flush(1, "a", 5));
    server.gate.wait_for_sync();
    let reply = sync(server.address, &ask(2, "b")).reply();
    assert_eq!(reply.leases.len(), 1);
    assert!(flushed.try_recv().is_err());
}

#[test]
fn a_full_disk_acknowledges_nothing_says_so_and_goes_on_once_there_is_room() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    server.gate.fill();
    let refused = sync(to, &flush(1, "a", 5));
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (503, "unready")
    );
    assert!(refused.header("retry-after").is_some());
    assert!(refused.text().contains("is kept"), "{}", refused.text());
    let check = check(to, &json!({"rule": "wide", "key": "b"}));
    assert_eq!(check.status, 503);
    let ready = get(to, "/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("no room"), "{}", ready.text());
    assert_eq!(get(to, "/healthz").status, 200);
    server.gate.open();
    until("there is room", || get(to, "/readyz").status == 200);
    // It was kept, and only waited: the source that sends it again learns so.
    let again = sync(to, &flush(1, "a", 5)).reply();
    assert_eq!(again.acks[0].status(), Status::Duplicate);
    assert_eq!(metric(to, "weir_hits_total", "rule=\"wide\""), 5);
}

#[test]
fn a_failed_sync_ends_the_service_and_acknowledges_nothing() {
    let place = Place::new();
    let server = place.start();
    server.gate.shatter();
    assert_eq!(sync(server.address, &flush(1, "a", 5)).status, 503);
    let error = server.end().unwrap_err();
    assert!(error.to_string().contains("start again"), "{error}");
}

#[test]
fn a_service_that_stops_answers_what_is_under_way_first() {
    let place = Place::new();
    let mut server = place.start();
    server.gate.hold();
    let flushed = send_aside(server.address, flush(1, "a", 5));
    server.gate.wait_for_sync();
    server.begin_stop();
    assert!(flushed.recv_timeout(A_WHILE).is_err());
    server.gate.open();
    assert_eq!(flushed.recv().unwrap().acks[0].status(), Status::Counted);
    server.end().unwrap();
    let server = place.start();
    assert_eq!(
        metric(server.address, "weir_hits_total", "rule=\"wide\""),
        5
    );
}
