//! Rules that are changed over the API while the service runs.

use std::{net::TcpStream, process::Command, thread};

use aggregator::{
    auth::{Digest, Token},
    config::RulesFrom,
};
use serde_json::{Value, json};

use crate::{
    common::{
        client::{Response, check, get, metric, send, send_as, sync, try_send_over, until},
        messages::{RULES, flush},
    },
    server::{Place, TestServer},
};

/// A service that has no rule file.
fn without_file() -> (Place, TestServer) {
    let mut place = Place::new();
    place.settings.rules = None;
    let server = ready(&place);
    (place, server)
}

/// One that may have no rules, and is ready for them.
fn ready(place: &Place) -> TestServer {
    let server = place.launch();
    until("it answers", || {
        get(server.address, "/v1/rules").status != 503
    });
    server
}

/// The same with `RULES` put, as revision 1.
fn with_rules() -> (Place, TestServer) {
    let (place, server) = without_file();
    assert_eq!(put(&server, "", RULES).json()["revision"], 1);
    (place, server)
}

fn put(server: &TestServer, query: &str, text: &str) -> Response {
    let path = format!("/v1/rules{query}");
    send(server.address, "PUT", &path, text.as_bytes())
}

fn put_if(server: &TestServer, condition: &str, text: &str) -> Response {
    let stream = TcpStream::connect(server.address).unwrap();
    let head = format!("{condition}\r\n");
    try_send_over(stream, "PUT", "/v1/rules", &head, text.as_bytes()).unwrap()
}

fn rollback(server: &TestServer, revision: u64) -> Response {
    let body = json!({ "revision": revision }).to_string();
    send(
        server.address,
        "POST",
        "/v1/rules/rollback",
        body.as_bytes(),
    )
}

fn rules(server: &TestServer) -> (String, String) {
    let answer = get(server.address, "/v1/rules");
    assert_eq!(answer.status, 200, "{}", answer.text());
    (answer.header("etag").unwrap().to_owned(), answer.text())
}

fn history(server: &TestServer) -> Vec<Value> {
    let answer = get(server.address, "/v1/rules/history").json();
    answer["history"].as_array().unwrap().clone()
}

/// What is left of a rule's limit under the key `a` after one more hit.
fn left(server: &TestServer, rule: &str) -> u64 {
    let asked = json!({"rule": rule, "key": "a"});
    let answer = check(server.address, &asked).json();
    answer["limit"].as_u64().unwrap() - answer["remaining"].as_u64().unwrap()
}

fn limit_four() -> String {
    RULES.replace("limit: 3,", "limit: 4,")
}

#[test]
fn rules_that_are_put_take_hold_and_are_told_as_they_were_written() {
    let (_place, server) = without_file();
    assert_eq!(get(server.address, "/v1/rules").problem(), "no-rules");
    assert_eq!(get(server.address, "/readyz").status, 503);
    let answer = put(&server, "", RULES);
    assert_eq!(answer.header("etag"), Some("\"1\""), "{}", answer.text());
    let said = answer.json();
    assert_eq!(
        (&said["changed"], &said["summary"]),
        (&json!(true), &json!("3 added"))
    );
    assert_eq!(rules(&server), ("\"1\"".to_owned(), RULES.to_owned()));
    assert_eq!(left(&server, "wide"), 1);
    let told = get(server.address, "/v1/rules");
    assert_eq!(told.header("content-type"), Some("application/yaml"));
    assert_eq!(told.header("weir-rules-revision"), Some("1"));
    let reply = sync(server.address, &flush(1, "a", 5)).reply();
    assert!(reply.rules.is_none(), "the source has them");
    put(&server, "", &limit_four());
    let reply = sync(server.address, &flush(2, "a", 5)).reply();
    assert_eq!(reply.rules_revision, 2);
    assert!(
        reply
            .rules
            .unwrap()
            .rules
            .iter()
            .any(|rule| rule.limit == 4)
    );
    assert_eq!(metric(server.address, "weir_rule_changes_total", "api"), 2);
}

#[test]
fn json_is_given_back_as_json_and_what_only_says_so_is_refused() {
    let (_place, server) = without_file();
    let rule = json!({"name": "r", "limit": 1, "window": "1s"});
    let text = json!({"version": 1, "domain": "d", "rules": [rule]}).to_string();
    let kind = "content-type: application/json; charset=utf-8";
    assert_eq!(put_if(&server, kind, &text).status, 200);
    let told = get(server.address, "/v1/rules");
    assert_eq!(told.header("content-type"), Some("application/json"));
    assert_eq!(told.text(), text);
    assert_eq!(put_if(&server, kind, RULES).status, 400);
    assert_eq!(rules(&server).1, text);
}

#[test]
fn rules_that_are_in_force_already_keep_their_revision_and_another_text_does_not() {
    let (_place, server) = with_rules();
    let same = put(&server, "", RULES).json();
    assert_eq!(
        (&same["revision"], &same["changed"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(history(&server).len(), 1);
    let commented = format!("# all of them\n{RULES}");
    let other = put(&server, "", &commented).json();
    assert_eq!(
        (&other["revision"], &other["changed"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(other["summary"], "no rule changed");
    assert_eq!(rules(&server).1, commented);
}

#[test]
fn of_writers_who_start_from_one_revision_exactly_one_is_taken() {
    let (_place, server) = with_rules();
    let statuses: Vec<u16> = thread::scope(|scope| {
        let server = &server;
        let write = |limit: u64| {
            let text = RULES.replace("limit: 3,", &format!("limit: {limit},"));
            scope.spawn(move || put_if(server, "if-match: \"1\"", &text).status)
        };
        let writers: Vec<_> = (4..10).map(write).collect();
        let ended = writers.into_iter().map(|writer| writer.join().unwrap());
        ended.collect()
    });
    let taken = statuses.iter().filter(|status| **status == 200).count();
    let told = statuses.iter().filter(|status| **status == 412).count();
    assert_eq!((taken, told), (1, 5), "{statuses:?}");
    assert_eq!(history(&server).len(), 2);
    let refused = put_if(&server, "if-match: \"1\"", RULES);
    assert_eq!(refused.problem(), "precondition");
    assert_eq!(refused.json()["revision"], 2);
    assert_eq!(put_if(&server, "if-none-match: *", RULES).status, 412);
    assert_eq!(put_if(&server, "if-match: 2", RULES).problem(), "malformed");
    assert_eq!(put_if(&server, "if-match: \"2\"", RULES).status, 200);
}

#[test]
fn writers_who_ask_for_no_revision_are_all_taken_one_after_the_other() {
    let (_place, server) = with_rules();
    thread::scope(|scope| {
        let server = &server;
        for limit in 4..10 {
            let text = RULES.replace("limit: 3,", &format!("limit: {limit},"));
            scope.spawn(move || assert_eq!(put(server, "", &text).status, 200));
        }
    });
    let numbers: Vec<Value> = history(&server)
        .iter()
        .map(|entry| entry["revision"].clone())
        .collect();
    assert_eq!(numbers, [7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn a_file_with_errors_is_refused_whole_and_each_is_told_with_its_place() {
    let (_place, server) = with_rules();
    let wrong = RULES
        .replace("limit: 3,", "limit: 0,")
        .replace("name: other,", "nmae: other,");
    let refused = put(&server, "", &wrong);
    assert_eq!((refused.status, &*refused.problem()), (422, "bad-rules"));
    let errors = refused.json()["errors"].as_array().unwrap().clone();
    assert!(errors.len() >= 2, "{errors:?}");
    let limit = errors
        .iter()
        .find(|error| error["path"] == "rules[2].limit");
    let limit = limit.unwrap();
    let column = wrong.lines().nth(5).unwrap().find("limit: 0").unwrap() + "limit: ".len() + 1;
    assert_eq!(
        (&limit["line"], &limit["column"]),
        (&json!(6), &json!(column))
    );
    assert!(!limit["message"].as_str().unwrap().is_empty());
    assert_eq!(rules(&server), ("\"1\"".to_owned(), RULES.to_owned()));
    assert_eq!(history(&server).len(), 1);
    let nothing = put(&server, "", "");
    assert_eq!(nothing.status, 422, "{}", nothing.text());
    let token = Token::random().unwrap();
    let leak = RULES.replace("limit: 3,", &format!("limit: {},", token.reveal()));
    let refused = put(&server, "", &leak);
    assert_eq!(refused.status, 422);
    assert!(
        !refused.text().contains(token.reveal()),
        "{}",
        refused.text()
    );
}

#[test]
fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let (_place, server) = with_rules();
    left(&server, "wide");
    let new = RULES
        .replace("limit: 3,", "limit: 4,")
        .replace(
            "name: other, key: [header.x-key]",
            "name: other, key: [host]",
        )
        .replace("name: wide", "name: wider");
    let said = put(&server, "?dry_run=true", &new).json();
    assert_eq!(
        (&said["revision"], &said["dry_run"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(said["changed"], true);
    let rule = |name: &str| {
        let rules = said["rules"].as_array().unwrap();
        let rule = rules.iter().find(|rule| rule["name"] == name).unwrap();
        (rule["what"].clone(), rule["counts"].clone())
    };
    assert_eq!(rule("three"), (json!("changed"), json!("kept")));
    assert_eq!(rule("other"), (json!("changed"), json!("anew")));
    assert_eq!(rule("wider"), (json!("added"), json!("anew")));
    assert_eq!(rule("wide"), (json!("removed"), json!("given_up")));
    assert_eq!(
        said["summary"],
        "1 added, 1 removed, 2 changed, 1 counting anew"
    );
    assert_eq!(rules(&server), ("\"1\"".to_owned(), RULES.to_owned()));
    assert_eq!(history(&server).len(), 1);
    assert_eq!(left(&server, "wide"), 2);
    assert_eq!(put(&server, "?dry_runn=true", &new).status, 400);
}

#[test]
fn counts_that_still_apply_are_kept_and_others_start_anew() {
    let (_place, server) = with_rules();
    for rule in ["wide", "other"] {
        assert_eq!((left(&server, rule), left(&server, rule)), (1, 2));
    }
    let new = RULES
        .replace(
            "name: wide, key: [header.x-key], limit: 1000000000",
            "name: wide, key: [header.x-key], limit: 500",
        )
        .replace(
            "name: other, key: [header.x-key]",
            "name: other, key: [host]",
        );
    assert_eq!(put(&server, "", &new).status, 200);
    assert_eq!(left(&server, "wide"), 3);
    assert_eq!(left(&server, "other"), 1);
}

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
fn a_text_that_is_too_long_is_refused_before_it_is_read() {
    let mut place = Place::new();
    place.settings.rules = None;
    place.settings.body_bytes_max = Some(1024);
    let server = ready(&place);
    let long = format!("{RULES}#{}", "x".repeat(1024));
    let refused = put(&server, "", &long);
    assert_eq!((refused.status, &*refused.problem()), (413, "too-large"));
    assert_eq!(put(&server, "", RULES).status, 200);
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
fn a_reader_that_has_the_rules_is_not_told_them_again() {
    let (_place, server) = with_rules();
    let ask = |tag: &str| {
        let stream = TcpStream::connect(server.address).unwrap();
        let head = format!("if-none-match: {tag}\r\n");
        try_send_over(stream, "GET", "/v1/rules", &head, b"")
    };
    let other = ask("\"7\"").unwrap();
    assert_eq!((other.status, other.text()), (200, RULES.to_owned()));
    // It has no body, and so says no length.
    drop(ask("\"1\""));
    assert_eq!(
        metric(server.address, "weir_http_responses_total", "304"),
        1
    );
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
