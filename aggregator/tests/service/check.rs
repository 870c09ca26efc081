//! `POST /v1/ratelimit/check`.

use serde_json::{Value, json};

use crate::{
    common::client::{Response, check, send},
    server::{Place, TestServer},
};

fn enforce(server: &TestServer, body: &Value) -> Response {
    let path = "/v1/ratelimit/check?enforce=true";
    send(server.address, "POST", path, body.to_string().as_bytes())
}

#[test]
fn a_limit_of_three_allows_three_and_no_more() {
    let place = Place::new();
    let server = place.start();
    let asked = json!({"rule": "three", "key": ["a", "GET"], "cost": 1});
    for left in [2, 1, 0] {
        let answer = check(server.address, &asked).json();
        assert_eq!(answer["allowed"], true, "{answer}");
        assert_eq!(answer["remaining"], left, "{answer}");
        assert_eq!(answer["retry_after"], Value::Null);
    }
    let denied = check(server.address, &asked);
    assert_eq!(denied.status, 200);
    let answer = denied.json();
    assert_eq!(answer["allowed"], false, "{answer}");
    assert_eq!(
        (&answer["limit"], &answer["tier"]),
        (&json!(3), &json!("region"))
    );
    assert!(answer["retry_after"].as_u64() > Some(0), "{answer}");
    assert!(
        answer["reset_at"].as_u64() > Some(1_700_000_000),
        "{answer}"
    );
    // Another value in the key is another counter.
    let other = json!({"scope": "three", "key": ["a", "POST"]});
    assert_eq!(check(server.address, &other).json()["allowed"], true);
}

#[test]
fn a_denial_that_is_enforced_says_so_to_http() {
    let place = Place::new();
    let server = place.start();
    let asked = json!({"rule": "three", "key": ["a", "GET"], "cost": 3});
    let allowed = enforce(&server, &asked);
    assert_eq!(allowed.status, 200);
    assert_eq!(
        allowed.header("ratelimit-policy"),
        Some("\"three\";q=3;w=31536000")
    );
    let state = allowed.header("ratelimit").unwrap();
    assert!(state.starts_with("\"three\";r=0;t="), "{state}");
    let denied = enforce(&server, &asked);
    assert_eq!(denied.status, 429);
    assert!(denied.problem().ends_with("#quota-exceeded"));
    assert_eq!(denied.json()["violated-policies"], json!(["three"]));
    assert!(
        denied
            .header("retry-after")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            > 0
    );
    assert!(denied.header("ratelimit").is_some());
}

#[test]
fn an_enforced_denial_is_answered_as_its_rule_says() {
    let place = Place::new();
    place.write_rules(OWN);
    let server = place.start();
    let ask = |rule: &str| enforce(&server, &json!({ "rule": rule }));
    let first = ask("own");
    assert_eq!(first.status, 200);
    assert_eq!(first.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(first.header("ratelimit"), None, "not in this form");
    let denied = ask("own");
    assert_eq!((denied.status, &*denied.text()), (403, "<p>later"));
    assert_eq!(denied.header("content-type"), Some("text/html"));
    assert_eq!(denied.header("x-why"), Some("limit"));
    assert_eq!(
        denied.header("x-ratelimit-reset"),
        denied.header("retry-after")
    );
    assert_eq!(ask("status").status, 200);
    let denied = ask("status");
    assert_eq!(denied.status, 503);
    assert_eq!(denied.json()["status"], 503);
    assert!(denied.problem().ends_with("#quota-exceeded"));
    let (wait, state) = (denied.header("retry-after"), denied.header("ratelimit"));
    let expected = format!("\"status\";r=0;t={}", wait.unwrap());
    assert_eq!(state, Some(&*expected), "neither is before the other");
}

/// Rules with answers of their own.
const OWN: &str = "version: 1
domain: d
rules:
  - name: own
    limit: 1
    window: 365d
    ratelimit_headers: x-ratelimit
    response: { status: 403, body: <p>later, content_type: text/html, headers: { X-Why: limit } }
  - name: status
    limit: 1
    window: 365d
    response: { status: 503 }
";

#[test]
fn a_cost_that_can_never_be_allowed_is_told_no_time_to_come_again() {
    let place = Place::new();
    let server = place.start();
    let asked = json!({"rule": "three", "key": ["a", "GET"], "cost": 4});
    let denied = enforce(&server, &asked);
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("retry-after"), None);
    assert!(denied.text().contains("never allows"), "{}", denied.text());
}

#[test]
fn an_unknown_rule_is_answered_with_those_there_are() {
    let place = Place::new();
    let server = place.start();
    let response = check(server.address, &json!({"rule": "none", "key": "a"}));
    assert_eq!(
        (response.status, response.problem().as_str()),
        (404, "unknown-rule")
    );
    assert_eq!(response.json()["rules"], json!(["wide", "other", "three"]));
}

#[test]
fn a_request_that_is_not_understood_is_told_what_is_wrong_with_it() {
    let place = Place::new();
    let server = place.start();
    for (asked, kind, word) in [
        (
            json!({"rule": "three", "key": "a"}),
            "wrong-key",
            "2 key values, not 1",
        ),
        (json!({"rule": "wide"}), "wrong-key", "1 key values, not 0"),
        (
            json!({"rule": "wide", "key": "a", "cost": 0}),
            "malformed",
            "nonzero",
        ),
        (
            json!({"rule": "wide", "key": 7}),
            "malformed",
            "list of strings",
        ),
        (json!({"rule": "wide", "kee": "a"}), "malformed", "kee"),
        (json!({"key": "a"}), "malformed", "rule"),
    ] {
        let response = check(server.address, &asked);
        assert_eq!(
            (response.status, response.problem().as_str()),
            (400, kind),
            "{asked}"
        );
        assert!(response.text().contains(word), "{}", response.text());
    }
}
