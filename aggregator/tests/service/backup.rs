//! A backup of a running service, and a service that starts from it.

use std::sync::Arc;

use aggregator::store::{RealDisk, restore};
use limiter::wire::ack::Status;
use serde_json::json;

use crate::{
    common::{
        client::{check, get, sync},
        messages::flush,
    },
    server::Place,
};

#[test]
fn a_service_that_starts_from_a_backup_knows_every_hit_acknowledged_before_it() {
    let place = Place::new();
    let server = place.start();
    for number in 1..=50 {
        sync(server.address, &flush(number, "a", 1)).reply();
    }
    let backup = get(server.address, "/v1/backup");
    assert_eq!(backup.status, 200);
    assert_eq!(backup.header("content-type"), Some("application/x-tar"));
    sync(server.address, &flush(51, "a", 7)).reply();
    server.stop();

    let other = Place::new();
    let disk = Arc::new(RealDisk);
    let report = restore(disk, &other.data_dir(), backup.body.as_slice()).unwrap();
    assert!(report.records >= 50);
    let server = other.start();
    let again = sync(server.address, &flush(50, "a", 1)).reply();
    assert_eq!(again.acks[0].status(), Status::Duplicate);
    let next = sync(server.address, &flush(51, "a", 1)).reply();
    assert_eq!(next.acks[0].status(), Status::Counted);
    let answer = check(server.address, &json!({"rule": "wide", "key": "a"})).json();
    assert_eq!(answer["remaining"], 1_000_000_000 - 52);
}
