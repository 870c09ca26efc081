//! Rules that are changed over the API while the service runs.

use std::{net::TcpStream, thread};

use aggregator::auth::Token;
use serde_json::{Value, json};

use crate::{
    common::{
        client::{get, metric, sync, try_send_over},
        messages::{RULES, flush},
    },
    rules_client::{
        history, left, limit_four, put, put_if, ready, rules, with_rules, without_file,
    },
    server::Place,
};

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
