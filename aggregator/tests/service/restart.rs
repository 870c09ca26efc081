//! What is still there after a restart.

use std::sync::Arc;

use aggregator::{
    config::DurabilityName,
    store::{RealDisk, verify},
};
use limiter::wire::ack::Status;
use serde_json::json;

use crate::{
    common::{
        client::{check, metric, sync, until},
        messages::{RULES, flush},
    },
    server::Place,
};

#[test]
fn counts_sequences_and_the_revision_of_the_rules_survive_a_restart() {
    let place = Place::new();
    let server = place.start();
    sync(server.address, &flush(1, "a", 5)).reply();
    let before = check(server.address, &json!({"rule": "wide", "key": "a"})).json();
    server.stop();
    let server = place.start();
    let after = check(server.address, &json!({"rule": "wide", "key": "a"})).json();
    let left = |answer: &serde_json::Value| answer["remaining"].as_u64().unwrap();
    assert_eq!(left(&before), 1_000_000_000 - 6);
    assert_eq!(left(&after), left(&before) - 1);
    let again = sync(server.address, &flush(1, "a", 5)).reply();
    assert_eq!(again.acks[0].status(), Status::Duplicate);
    assert_eq!(metric(server.address, "weir_rules_revision", ""), 1);
}

#[test]
fn rules_that_changed_while_the_service_was_down_get_a_revision_of_their_own() {
    let place = Place::new();
    place.start().stop();
    place.write_rules(&RULES.replace("limit: 3,", "limit: 4,"));
    let server = place.start();
    until("the new rules are in force", || {
        metric(server.address, "weir_rules_revision", "") == 2
    });
}

#[test]
fn a_snapshot_replaces_the_log_before_it_and_loses_nothing() {
    snapshots_lose_nothing(DurabilityName::Fsynced);
}

#[test]
fn a_snapshot_of_what_was_only_written_waits_until_that_is_synced() {
    snapshots_lose_nothing(DurabilityName::Written);
}

fn snapshots_lose_nothing(durability: DurabilityName) {
    let mut place = Place::new();
    place.settings.durability = Some(durability);
    place.settings.snapshot_log_bytes = Some(4096);
    let server = place.start();
    let to = server.address;
    let mut sequence = 0;
    until("two snapshots are taken", || {
        sequence += 1;
        sync(to, &flush(sequence, "a", 2)).reply();
        metric(to, "weir_snapshots_total", "") >= 2
    });
    server.stop();
    let report = verify(Arc::new(RealDisk), &place.data_dir()).unwrap();
    assert!(
        report.shards == 64 && report.records < sequence,
        "{report:?}"
    );
    let server = place.start();
    let hits = metric(server.address, "weir_hits_total", "rule=\"wide\"");
    assert_eq!(hits, 2 * sequence);
    let next = sync(server.address, &flush(sequence, "a", 2)).reply();
    assert_eq!(next.acks[0].status(), Status::Duplicate);
}
