//! `commit: fast`, and requests that are described.

use std::{sync::mpsc, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    common::client::{check, send},
    counters::add,
    server::Place,
};

/// Long enough for an answer that is not held back to arrive.
const A_WHILE: Duration = Duration::from_millis(150);

const RULES: &str = "\
version: 1
domain: test
rules:
  - { name: fast, match: { paths: [/fast] }, limit: 100000, window: 365d, algorithm: fixed_window, commit: fast }
  - { name: key, match: { paths: [\"/v1/**\"], methods: [POST] }, key: [header.X-Key], limit: 3, window: 365d }
  - { name: ip, match: { paths: [\"/v1/**\"] }, key: [ip], limit: 2, window: 365d, commit: fast }
";

#[test]
fn a_fast_check_waits_for_no_commit_unless_the_next_does_not_begin_soon() {
    let place = Place::new();
    place.write_rules(RULES);
    let server = place.start();
    let to = server.address;
    server.gate.hold();
    let adding = thread::spawn(move || add(to, &json!({"counter_id": "a"})).status);
    server.gate.wait_for_sync();
    // A commit is under way and stays so; this one waits for no disk.
    let asked = json!({"rule": "fast"});
    assert_eq!(check(to, &asked).json()["remaining"], 99_999);
    // As long as the next does not begin, no more is told ahead of it.
    let (tell, told) = mpsc::channel();
    let asking = thread::spawn(move || {
        let mut left = 99_999;
        while left == told_left(&check(to, &asked).json()) + 1 {
            left -= 1;
            if tell.send(left).is_err() {
                return;
            }
        }
    });
    while told.recv_timeout(A_WHILE).is_ok() {}
    server.gate.open();
    // What was held back is told once it is durable.
    assert!(told.recv().is_ok());
    assert_eq!(adding.join().unwrap(), 200);
    drop(told);
    asking.join().unwrap();
}

fn told_left(answer: &Value) -> u64 {
    answer["remaining"].as_u64().unwrap_or(u64::MAX - 1)
}

#[test]
fn a_request_in_words_is_decided_by_all_rules_that_apply_together() {
    let place = Place::new();
    place.write_rules(RULES);
    let server = place.start();
    let asked = |method: &str, key: &str, ip: &str| {
        let request = json!({
            "method": method, "host": "api.test", "path": "/v1/x?y=z",
            "headers": {"x-KEY": key}, "ip": ip,
        });
        let told = check(server.address, &json!({ "request": request }));
        assert_eq!(told.status, 200, "{}", told.text());
        let told = told.json();
        let rule = told["rule"].as_str().map(str::to_owned);
        (
            told["allowed"] == true,
            rule.unwrap_or_default(),
            told["remaining"].clone(),
        )
    };
    let told = |allowed, rule: &str, left: u64| (allowed, rule.to_owned(), json!(left));
    // Both apply; the one with the least left is named.
    assert_eq!(asked("POST", "a", "192.0.2.1"), told(true, "ip", 1));
    assert_eq!(asked("POST", "a", "192.0.2.2"), told(true, "key", 1));
    assert_eq!(asked("POST", "a", "192.0.2.2"), told(true, "key", 0));
    // Denied by one, it spends from none.
    assert_eq!(asked("POST", "a", "192.0.2.3"), told(false, "key", 0));
    assert_eq!(asked("GET", "a", "192.0.2.3"), told(true, "ip", 1));
    assert_eq!(asked("GET", "b", "192.0.2.2"), told(false, "ip", 0));
}

#[test]
fn a_request_that_is_no_rule_s_business_is_allowed_without_numbers() {
    let place = Place::new();
    place.write_rules(RULES);
    let server = place.start();
    let asked = json!({"request": {"path": "/other"}});
    let told = check(server.address, &asked).json();
    assert_eq!(
        (&told["allowed"], &told["rule"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(
        (&told["limit"], &told["remaining"]),
        (&Value::Null, &Value::Null)
    );
    let path = "/v1/ratelimit/check?enforce=true";
    let told = send(server.address, "POST", path, asked.to_string().as_bytes());
    assert_eq!((told.status, told.header("ratelimit")), (200, None));
}

#[test]
fn a_check_is_of_a_rule_or_of_a_request_and_says_so() {
    let place = Place::new();
    place.write_rules(RULES);
    let server = place.start();
    for (asked, field) in [
        (json!({}), "rule"),
        (json!({"rule": "fast", "request": {"path": "/"}}), "request"),
        (json!({"cost": 2, "request": {"path": "/"}}), "request"),
        (json!({"request": {"method": "GET"}}), "request"),
        (
            json!({"request": {"path": "/", "ip": "here"}}),
            "request.ip",
        ),
        (
            json!({"request": {"path": "/", "headers": {"a": 1}}}),
            "request.headers.a",
        ),
    ] {
        let told = check(server.address, &asked);
        assert_eq!((told.status, told.problem().as_str()), (400, "malformed"));
        assert_eq!(told.json()["field"], field, "{}", told.text());
    }
}
