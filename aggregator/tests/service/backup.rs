//! A backup of a running service, and a service that starts from it.

use std::process::{Command, Output};

use limiter::wire::ack::Status;
use serde_json::json;

use crate::{
    common::{
        client::{check, sync},
        messages::flush,
    },
    server::Place,
};

fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn a_service_that_starts_from_a_backup_knows_every_hit_acknowledged_before_it() {
    let place = Place::new();
    let server = place.start();
    for number in 1..=50 {
        sync(server.address, &flush(number, "a", 1)).reply();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    let file = file.to_str().unwrap();
    let url = format!("http://{}", server.address);
    let taken = weir(&["backup", file, "--url", &url]);
    assert!(taken.status.success(), "{taken:?}");
    sync(server.address, &flush(51, "a", 7)).reply();
    server.stop();

    let other = Place::new();
    let data = other.data_dir();
    let restore = ["restore", file, "--data-dir", data.to_str().unwrap()];
    let restored = weir(&restore);
    assert!(restored.status.success(), "{restored:?}");
    let again = weir(&restore);
    assert_eq!(
        again.status.code(),
        Some(1),
        "it is there already: {again:?}"
    );
    let server = other.start();
    let again = sync(server.address, &flush(50, "a", 1)).reply();
    assert_eq!(again.acks[0].status(), Status::Duplicate);
    let next = sync(server.address, &flush(51, "a", 1)).reply();
    assert_eq!(next.acks[0].status(), Status::Counted);
    let answer = check(server.address, &json!({"rule": "wide", "key": "a"})).json();
    assert_eq!(answer["remaining"], 1_000_000_000 - 52);
}

#[test]
fn a_backup_that_cannot_be_had_leaves_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    std::fs::write(&file, "the one before").unwrap();
    let args = ["backup", file.to_str().unwrap(), "--url"];
    let place = Place::new();
    let server = place.start();
    let url = format!("http://{}", server.address);
    server.stop();
    let refused = weir(&[&args[..], &[url.as_str()]].concat());
    assert_eq!(refused.status.code(), Some(69), "{refused:?}");
    assert_eq!(std::fs::read(&file).unwrap(), b"the one before");
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}
