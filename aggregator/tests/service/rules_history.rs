//! How rules came to be: kept, told, and gone back to; and whose word counts.

use std::{process::Command, sync::mpsc, thread, time::Duration};

use aggregator::{
    auth::{Digest, Token},
    config::RulesFrom,
};
use serde_json::json;

use crate::{
    common::{
        client::{get, metric, send, send_as, sync, until},
        messages::{RULES, flush},
    },
    rules_client::{history, limit_four, put, ready, rollback, rules, with_rules},
    server::Place,
};

#[test]
fn going_back_puts_an_earlier_text_in_force_under_a_new_revision() {
    let (_place, server) = with_rules();
    put(&server, "", &limit_four());
    let dry = send(
        server.address,
        "POST",
        "/v1/rules/rollback?dry_run=true",
        b"{\"revision\": 1}",
    );
    assert_eq!(dry.json()["changed"], true);
    assert_eq!(rules(&server).0, "\"2\"");
    let said = rollback(&server, 1).json();
    assert_eq!(
        (&said["revision"], &said["summary"]),
        (&json!(3), &json!("1 changed"))
    );
    assert_eq!(rules(&server), ("\"3\"".to_owned(), RULES.to_owned()));
    let latest = &history(&server)[0];
    assert_eq!(
        (&latest["from"], &latest["back_to"]),
        (&json!("rollback"), &json!(1))
    );
    assert_eq!(
        get(server.address, "/v1/rules/revisions/2").text(),
        limit_four()
    );
    let unknown = rollback(&server, 9);
    assert_eq!(
        (unknown.status, &*unknown.problem()),
        (404, "no-such-revision")
    );
    assert_eq!(unknown.json()["kept"], json!([3, 2, 1]));
    assert_eq!(get(server.address, "/v1/rules/revisions/x").status, 400);
}

#[test]
fn texts_and_their_history_survive_a_restart_from_the_log_and_from_a_snapshot() {
    let mut place = Place::new();
    place.settings.rules = None;
    place.settings.snapshot_log_bytes = Some(4096);
    let server = ready(&place);
    put(&server, "", RULES);
    put(&server, "", &limit_four());
    let before = history(&server);
    let mut sequence = 0;
    until("two snapshots are taken", || {
        sequence += 1;
        sync(server.address, &flush(sequence, "a", 2)).reply();
        metric(server.address, "weir_snapshots_total", "") >= 2
    });
    server.stop();
    let server = ready(&place);
    assert_eq!(history(&server), before);
    assert_eq!(rules(&server), ("\"2\"".to_owned(), limit_four()));
    put(&server, "", RULES);
    server.stop();
    let server = ready(&place);
    assert_eq!(rules(&server), ("\"3\"".to_owned(), RULES.to_owned()));
    assert_eq!(history(&server)[1..], before);
    assert_eq!(rollback(&server, 2).json()["revision"], 4);
}

#[test]
fn a_backup_holds_the_rules_and_how_they_came_to_be() {
    let (_place, server) = with_rules();
    put(&server, "", &limit_four());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    let url = format!("http://{}", server.address);
    let weir = |args: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    weir(&["backup", file.to_str().unwrap(), "--url", &url]);
    let mut other = Place::new();
    other.settings.rules = None;
    let data = other.data_dir();
    weir(&[
        "restore",
        file.to_str().unwrap(),
        "--data-dir",
        data.to_str().unwrap(),
    ]);
    let restored = ready(&other);
    assert_eq!(history(&restored), history(&server));
    assert_eq!(rules(&restored), rules(&server));
}

#[test]
fn a_hundred_changes_are_remembered_and_no_more() {
    let (_place, server) = with_rules();
    for limit in 4..110 {
        let text = RULES.replace("limit: 3,", &format!("limit: {limit},"));
        assert_eq!(put(&server, "", &text).status, 200);
    }
    let history = history(&server);
    assert_eq!(history.len(), 100);
    assert_eq!(history[0]["revision"], 107);
    assert_eq!(rollback(&server, 1).problem(), "no-such-revision");
}

#[test]
fn with_a_rule_file_the_file_is_the_truth() {
    let place = Place::new();
    let server = place.start();
    until("the file is told", || {
        get(server.address, "/v1/rules").status == 200
    });
    assert_eq!(rules(&server).1, RULES);
    assert_eq!(history(&server)[0]["from"], "file");
    let refused = put(&server, "", &limit_four());
    assert_eq!(
        (refused.status, &*refused.problem()),
        (409, "rules-from-file")
    );
    assert!(refused.text().contains("rules.yaml"), "{}", refused.text());
    assert_eq!(rollback(&server, 1).status, 409);
    let dry = put(&server, "?dry_run=true", &limit_four()).json();
    assert_eq!(dry["summary"], "1 changed");
    place.write_rules(&limit_four());
    until("the file is in force", || rules(&server).1 == limit_four());
    assert_eq!(rules(&server).0, "\"2\"");
}

#[test]
fn a_rule_file_that_is_for_the_first_start_only_is_left_alone_after_that() {
    let mut place = Place::new();
    place.settings.rules_from = Some(RulesFrom::Api);
    let server = place.start();
    assert_eq!(rules(&server).1, RULES);
    assert_eq!(put(&server, "", &limit_four()).json()["revision"], 2);
    server.stop();
    let server = place.start();
    assert_eq!(rules(&server), ("\"2\"".to_owned(), limit_four()));
}

#[test]
fn who_changed_the_rules_is_told_by_the_name_of_their_token() {
    let [writer, reader] = [(); 2].map(|()| Token::random().unwrap());
    let entry = |name: &str, rights: &str, token: &Token| {
        let sha256 = Digest::of(token.reveal().as_bytes());
        format!("  - {{ name: {name}, tenant: t, rights: [{rights}], sha256: \"{sha256}\" }}\n")
    };
    let entries = entry("ci", "rules", &writer) + &entry("dash", "read", &reader);
    let mut place = Place::new();
    place.settings.rules = None;
    place.settings.token_file = Some(place.write("tokens.yaml", &format!("tokens:\n{entries}")));
    let server = place.launch();
    let ask = |token: &Token, method: &str, path: &str, body: &str| {
        send_as(
            server.address,
            token.reveal(),
            method,
            path,
            body.as_bytes(),
        )
    };
    until("it answers", || {
        ask(&reader, "GET", "/v1/rules", "").status == 404
    });
    assert_eq!(ask(&reader, "PUT", "/v1/rules", RULES).status, 403);
    let rollback = "{\"revision\": 1}";
    assert_eq!(
        ask(&reader, "POST", "/v1/rules/rollback", rollback).status,
        403
    );
    assert_eq!(ask(&writer, "GET", "/v1/rules", "").status, 403);
    assert_eq!(ask(&writer, "PUT", "/v1/rules", RULES).status, 200);
    let history = ask(&reader, "GET", "/v1/rules/history", "").json();
    assert_eq!(history["history"][0]["by"], "ci");
    assert!(history["history"][0]["at"].as_u64().unwrap() > 1_600_000_000);
}

/// Long enough for an answer that is not held back to arrive.
const A_WHILE: Duration = Duration::from_millis(150);

#[test]
fn rules_are_told_to_nobody_before_they_are_on_disk() {
    let (_place, server) = with_rules();
    server.gate.hold();
    let aside = |method: &'static str, text: String| {
        let (to, (answer, answered)) = (server.address, mpsc::channel());
        let ask = move || drop(answer.send(send(to, method, "/v1/rules", text.as_bytes())));
        thread::spawn(ask);
        answered
    };
    let put = aside("PUT", limit_four());
    server.gate.wait_for_sync();
    let read = aside("GET", String::new());
    assert!(put.recv_timeout(A_WHILE).is_err());
    assert!(read.recv_timeout(A_WHILE).is_err());
    server.gate.open();
    assert_eq!(put.recv().unwrap().json()["revision"], 2);
    assert_eq!(read.recv().unwrap().text(), limit_four());
}

#[test]
fn a_full_disk_takes_no_rules_and_tells_those_that_are_on_it() {
    let (_place, server) = with_rules();
    server.gate.fill();
    let refused = sync(server.address, &flush(1, "a", 5));
    assert_eq!(refused.status, 503);
    assert_eq!(put(&server, "", &limit_four()).status, 503);
    assert_eq!(rules(&server), ("\"1\"".to_owned(), RULES.to_owned()));
    server.gate.open();
    until("there is room", || {
        put(&server, "", &limit_four()).status == 200
    });
    assert_eq!(rules(&server).1, limit_four());
}
