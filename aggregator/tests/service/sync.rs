//! What a source's messages do, and what they are told.

use limiter::wire::ack::Status;

use crate::{
    common::{
        client::{metric, send, sync},
        messages::{flush, group, key, rules},
    },
    server::Place,
};

const WIDE: &str = "rule=\"wide\"";

#[test]
fn a_flush_sent_twice_counts_once() {
    let place = Place::new();
    let server = place.start();
    let flush = flush(1, "a", 5);
    let first = sync(server.address, &flush).reply();
    let again = sync(server.address, &flush).reply();
    assert_eq!(first.acks[0].status(), Status::Counted);
    assert_eq!(again.acks[0].status(), Status::Duplicate);
    assert_eq!(metric(server.address, "weir_hits_total", WIDE), 5);
    assert_eq!(metric(server.address, "weir_batches_total", "duplicate"), 1);
    assert_eq!(metric(server.address, "weir_deltas_total", ""), 1);
}

#[test]
fn a_flush_that_skips_a_sequence_is_told_which_one_is_missing_and_counts_nothing() {
    let place = Place::new();
    let server = place.start();
    let ack = sync(server.address, &flush(3, "a", 5)).reply().acks[0];
    assert_eq!((ack.status(), ack.expected), (Status::Gap, 1));
    assert_eq!(metric(server.address, "weir_hits_total", WIDE), 0);
}

#[test]
fn a_flush_from_the_future_is_told_so_and_counts_nothing() {
    let place = Place::new();
    let server = place.start();
    let mut flush = flush(1, "a", 5);
    flush.batches[0].groups[0].window = 1_000_000;
    let ack = sync(server.address, &flush).reply().acks[0];
    assert_eq!(ack.status(), Status::Future);
    assert_eq!(metric(server.address, "weir_hits_total", WIDE), 0);
}

#[test]
fn a_key_in_another_partition_is_refused_with_its_place_and_nothing_of_the_message_counts() {
    let place = Place::new();
    let server = place.start();
    let rules = rules();
    let mut flush = flush(1, "a", 5);
    let here = flush.batches[0].partition;
    let stray = (0..).map(|n| key(&rules, "wide", &n.to_string()));
    let stray = stray
        .into_iter()
        .find(|key| key.partition() != here)
        .unwrap();
    flush.batches[0]
        .groups
        .push(group(&rules, "wide", stray, 1));
    let response = sync(server.address, &flush);
    assert_eq!(
        (response.status, response.problem().as_str()),
        (400, "meaningless")
    );
    assert_eq!(response.json()["batch"], 0);
    assert_eq!(response.json()["group"], 1);
    assert_eq!(metric(server.address, "weir_hits_total", WIDE), 0);
}

#[test]
fn a_body_that_is_no_message_is_refused_and_changes_nothing() {
    let place = Place::new();
    let server = place.start();
    let response = send(server.address, "POST", "/v1/sync", b"\xff\xff\xff");
    assert_eq!(
        (response.status, response.problem().as_str()),
        (400, "malformed")
    );
    assert!(
        response.text().contains("SyncRequest"),
        "{}",
        response.text()
    );
}

#[test]
fn a_message_with_more_batches_than_partitions_is_refused() {
    let place = Place::new();
    let server = place.start();
    let mut flush = flush(1, "a", 5);
    flush.batches = vec![flush.batches[0].clone(); 65];
    let response = sync(server.address, &flush);
    assert_eq!(
        (response.status, response.problem().as_str()),
        (400, "malformed")
    );
    assert_eq!(response.json()["field"], "batches");
}

#[test]
fn a_body_over_the_limit_is_refused_and_the_limit_named() {
    let mut place = Place::new();
    place.settings.body_bytes_max = Some(1024);
    let server = place.start();
    let response = send(server.address, "POST", "/v1/sync", &[0; 1025]);
    assert_eq!(
        (response.status, response.problem().as_str()),
        (413, "too-large")
    );
    assert_eq!(response.json()["body_bytes_max"], 1024);
}

#[test]
fn a_source_with_other_rules_is_given_those_in_force() {
    let place = Place::new();
    let server = place.start();
    let mut flush = flush(1, "a", 5);
    flush.rules_revision = 0;
    let reply = sync(server.address, &flush).reply();
    assert_eq!(reply.rules.unwrap().rules.len(), 3);
    flush.rules_revision = reply.rules_revision;
    assert_eq!(sync(server.address, &flush).reply().rules, None);
}
