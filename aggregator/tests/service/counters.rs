//! `/v1/counter/…`.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    common::client::{Response, get, metric, send, until},
    server::Place,
};

pub fn add(to: SocketAddr, body: &Value) -> Response {
    let path = "/v1/counter/increment";
    send(to, "POST", path, body.to_string().as_bytes())
}

pub fn reset(to: SocketAddr, body: &Value) -> Response {
    let path = "/v1/counter/reset";
    send(to, "POST", path, body.to_string().as_bytes())
}

pub fn value(to: SocketAddr, name: &str) -> Option<i64> {
    let response = get(to, &format!("/v1/counter/{name}"));
    match response.status {
        200 => Some(response.json()["value"].as_i64().unwrap()),
        404 => {
            assert_eq!(response.problem(), "never-written");
            None
        }
        other => panic!("{other}: {}", response.text()),
    }
}

#[test]
fn an_add_is_told_the_sum_that_includes_it() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    assert_eq!(value(to, "signups"), None);
    let first = add(to, &json!({"counter_id": "signups", "delta": 41}));
    assert_eq!(first.status, 200, "{}", first.text());
    let told = json!({"counter_id": "signups", "value": 41, "applied": true});
    assert_eq!(first.json(), told);
    assert_eq!(
        add(to, &json!({"counter_id": "signups"})).json()["value"],
        42
    );
    let less = json!({"counter_id": "signups", "delta": -50});
    assert_eq!(add(to, &less).json()["value"], -8);
    assert_eq!(value(to, "signups"), Some(-8));
}

#[test]
fn a_seat_is_reserved_or_refused_in_one_call_and_can_be_handed_back() {
    let place = Place::new();
    let server = place.start();
    let seat = |delta| {
        let asked = json!({"counter_id": "seats", "delta": delta, "min": 0, "max": 2});
        let told = add(server.address, &asked).json();
        (told["value"].as_i64(), told["applied"].as_bool())
    };
    assert_eq!(seat(1), (Some(1), Some(true)));
    assert_eq!(seat(1), (Some(2), Some(true)));
    assert_eq!(seat(1), (Some(2), Some(false)));
    assert_eq!(seat(-1), (Some(1), Some(true)));
    assert_eq!(seat(1), (Some(2), Some(true)));
}

#[test]
fn a_counter_is_reset_to_zero_and_deleted_to_nothing() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    add(to, &json!({"counter_id": "a", "delta": 5}));
    let told = reset(to, &json!({"counter_id": "a"})).json();
    assert_eq!(told, json!({"counter_id": "a", "value": 0}));
    assert_eq!(value(to, "a"), Some(0));
    for deleted in [true, false] {
        let told = send(to, "DELETE", "/v1/counter/a", b"").json();
        assert_eq!(told, json!({"counter_id": "a", "deleted": deleted}));
        assert_eq!(value(to, "a"), None);
    }
}

#[test]
fn namespaces_share_nothing_and_any_name_can_be_a_path() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    for (delta, namespace) in [(1, "default"), (2, "other")] {
        let asked = json!({"counter_id": "reset", "delta": delta, "namespace": namespace});
        assert_eq!(add(to, &asked).json()["value"], delta);
    }
    assert_eq!(value(to, "reset"), Some(1));
    assert_eq!(value(to, "reset?namespace=other"), Some(2));
    add(to, &json!({"counter_id": "día/1?x", "delta": 7}));
    assert_eq!(value(to, "d%C3%ADa%2F1%3Fx"), Some(7));
}

#[test]
fn many_adds_are_answered_one_by_one_and_are_not_all_or_nothing() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    let told = add(
        to,
        &json!({"adds": [
            {"counter_id": "a", "delta": 2},
            {"counter_id": "a", "delta": 2, "max": 3},
            {"counter_id": "a", "dleta": 2},
            {"counter_id": "", "delta": 2},
            {"counter_id": "a", "delta": i64::MAX},
            {"counter_id": "b", "delta": 1, "namespace": "n"},
        ]}),
    );
    assert_eq!(told.status, 200, "{}", told.text());
    let results = told.json()["results"].clone();
    assert_eq!(
        results[0],
        json!({"counter_id": "a", "value": 2, "applied": true})
    );
    assert_eq!(
        results[1],
        json!({"counter_id": "a", "value": 2, "applied": false})
    );
    let kinds: Vec<_> = (2..5)
        .map(|n| results[n]["type"].as_str().unwrap())
        .collect();
    let problem = |kind| format!("urn:weir:problem:{kind}");
    assert_eq!(
        kinds,
        [
            problem("malformed"),
            problem("invalid"),
            problem("overflow")
        ]
    );
    assert_eq!(results[3]["field"], "counter_id");
    assert_eq!(results[5]["value"], 1);
    let many: Vec<_> = (0..1_001).map(|_| json!({"counter_id": "c"})).collect();
    let refused = add(to, &json!({"adds": many}));
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (422, "invalid")
    );
    assert_eq!(value(to, "c"), None);
    let most = add(to, &json!({"adds": many[..1_000]})).json();
    assert_eq!(most["results"][999]["value"], 1_000);
}

#[test]
fn an_add_sent_again_counts_once_over_a_restart_and_is_told_the_same() {
    let mut place = Place::new();
    place.settings.snapshot_log_bytes = Some(4_096);
    let server = place.start();
    let asked = json!({"counter_id": "a", "delta": 5, "idempotency_key": "k"});
    let first = add(server.address, &asked);
    assert_eq!(first.header("idempotent-replayed"), None);
    until("a snapshot is taken", || {
        add(server.address, &json!({"counter_id": "b"}));
        metric(server.address, "weir_snapshots_total", "") >= 1
    });
    let b = value(server.address, "b");
    server.stop();
    let server = place.start();
    let again = add(server.address, &asked);
    assert_eq!(again.body, first.body);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(value(server.address, "a"), Some(5));
    assert_eq!(value(server.address, "b"), b);
    let reused = json!({"counter_id": "a", "delta": 6, "idempotency_key": "k"});
    let refused = add(server.address, &reused);
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (422, "idempotency-key-reused")
    );
}

#[test]
fn what_cannot_be_added_is_told_with_its_field() {
    let place = Place::new();
    let server = place.start();
    let long = "x".repeat(257);
    for (asked, status, field, word) in [
        (json!({"counter_id": ""}), 422, "counter_id", "empty"),
        (json!({"counter_id": long}), 422, "counter_id", "256"),
        (json!({"counter_id": "a\nb"}), 422, "counter_id", "control"),
        (
            json!({"counter_id": "a", "namespace": ""}),
            422,
            "namespace",
            "empty",
        ),
        (
            json!({"counter_id": "a", "min": 2, "max": 1}),
            422,
            "min",
            "over max",
        ),
        (
            json!({"counter_id": "a", "ttl_s": 0}),
            422,
            "ttl_s",
            "between 1 and",
        ),
        (
            json!({"counter_id": "a", "idempotency_key": ""}),
            422,
            "idempotency_key",
            "empty",
        ),
        (
            json!({"counter_id": "a", "delta": 1.5}),
            400,
            "delta",
            "i64",
        ),
        (
            json!({"counter_id": "a", "delta": "1"}),
            400,
            "delta",
            "i64",
        ),
        (json!({"delta": 1}), 400, "", "counter_id"),
        (
            json!({"counter_id": "a", "adds": []}),
            400,
            "counter_id",
            "a list of adds",
        ),
        (json!([]), 400, "", "an add"),
    ] {
        let response = add(server.address, &asked);
        assert_eq!(response.status, status, "{asked}: {}", response.text());
        assert!(response.text().contains(word), "{}", response.text());
        if !field.is_empty() {
            assert_eq!(response.json()["field"], field);
        }
    }
}

#[test]
fn a_tenant_has_so_many_counters_and_no_more() {
    let mut place = Place::new();
    place.settings.tenant_counters_max = Some(2);
    let server = place.start();
    let status = |name: &str| add(server.address, &json!({ "counter_id": name })).status;
    assert_eq!([status("a"), status("b"), status("a")], [200; 3]);
    let refused = add(server.address, &json!({"counter_id": "c"}));
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (429, "tenant-limit")
    );
    assert_eq!(refused.json()["limit"], "tenant_counters_max");
    send(server.address, "DELETE", "/v1/counter/a", b"");
    assert_eq!(status("c"), 200);
}
