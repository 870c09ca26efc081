//! Rules that set tiers apart, asked for by name and by request.

use serde_json::{Value, json};

use crate::{
    common::client::{check, metric, send},
    server::{Place, TestServer},
};

const RULES: &str = "\
version: 1
domain: d
tiers:
  - { name: paid, when: { headers: { x-plan: paid } } }
  - { name: staff, when: { headers: { x-staff: present } } }
rules:
  - { name: r, key: [ header.x-key ], limit: 2, window: month, algorithm: fixed_window,
      per_tier: { paid: { limit: 5 }, staff: unlimited } }
";

fn start() -> (Place, TestServer) {
    let place = Place::new();
    place.write_rules(RULES);
    let server = place.start();
    (place, server)
}

fn asked(server: &TestServer, asked: &Value) -> Value {
    let answer = check(server.address, asked);
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

#[test]
fn each_tier_counts_apart_and_the_answer_names_it() {
    let (_place, server) = start();
    let everybody = asked(&server, &json!({"rule": "r", "key": "a"}));
    assert_eq!(everybody["rule_tier"], Value::Null);
    assert_eq!(
        (&everybody["limit"], &everybody["remaining"]),
        (&json!(2), &json!(1))
    );
    let paid = asked(&server, &json!({"rule": "r", "key": "a", "tier": "paid"}));
    assert_eq!(
        (&paid["rule"], &paid["rule_tier"]),
        (&json!("r"), &json!("paid"))
    );
    assert_eq!((&paid["limit"], &paid["remaining"]), (&json!(5), &json!(4)));
    // A request is of the tier that its headers say.
    let request = json!({"request": {"path": "/", "headers": {"x-key": "a", "x-plan": "paid"}}});
    let described = asked(&server, &request);
    assert_eq!(
        (&described["rule_tier"], &described["remaining"]),
        (&json!("paid"), &json!(3))
    );
    let hits = |labels| metric(server.address, "weir_checks_total", labels);
    assert_eq!(hits("rule=\"r\",tier=\"paid\",verdict=\"allow\""), 2);
    assert_eq!(hits("rule=\"r\",verdict=\"allow\""), 1);
}

#[test]
fn who_is_unlimited_is_allowed_whatever_was_spent_and_is_told_no_numbers() {
    let (_place, server) = start();
    for _ in 0..4 {
        let staff = asked(&server, &json!({"rule": "r", "key": "a", "tier": "staff"}));
        assert_eq!(
            (&staff["allowed"], &staff["rule_tier"]),
            (&json!(true), &json!("staff"))
        );
        assert_eq!(
            (&staff["limit"], &staff["reset_at"]),
            (&Value::Null, &Value::Null)
        );
    }
    let staff = json!({"rule": "r", "key": "a", "tier": "staff"});
    let path = "/v1/ratelimit/check?enforce=true";
    let enforced = send(server.address, "POST", path, staff.to_string().as_bytes());
    assert_eq!((enforced.status, enforced.header("ratelimit")), (200, None));
}

#[test]
fn a_tier_that_a_rule_does_not_set_apart_is_an_error_with_those_that_it_does() {
    let (_place, server) = start();
    let answer = check(
        server.address,
        &json!({"rule": "r", "key": "a", "tier": "gold"}),
    );
    assert_eq!(answer.status, 404);
    assert_eq!(answer.json()["tiers"], json!(["paid", "staff"]));
    assert_eq!(answer.json()["field"], "tier");
}

#[test]
fn a_month_has_no_number_of_seconds_and_ends_with_the_calendar_s() {
    let (_place, server) = start();
    let path = "/v1/ratelimit/check?enforce=true";
    let body = json!({"rule": "r", "key": "a"}).to_string();
    let answer = send(server.address, "POST", path, body.as_bytes());
    assert_eq!(answer.header("ratelimit-policy"), Some("\"r\";q=2"));
    let reset_at = answer.json()["reset_at"].as_u64().unwrap();
    assert_eq!(reset_at % 86_400, 0);
}
