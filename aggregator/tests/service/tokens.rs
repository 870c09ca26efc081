//! Who gets in with which token.

use std::net::TcpStream;

use aggregator::auth::{Digest, Token};
use serde_json::json;

use crate::{
    common::{
        client::{Response, get, metric_in, send, send_as, try_send_over, until},
        messages::flush,
    },
    server::{Place, TestServer},
};
use prost::Message;

/// A service, and tokens by name: each has the right it is called after.
struct Guarded {
    place: Place,
    server: TestServer,
}

const RIGHTS: [&str; 5] = ["sync", "check", "count", "read", "rules"];

fn entry(name: &str, rights: &str, more: &str) -> String {
    let sha256 = Digest::of(secret(name).as_bytes());
    format!("  - {{ name: {name}, tenant: t, rights: [{rights}], sha256: \"{sha256}\"{more} }}\n")
}

/// What a token of this name is in these tests.
fn secret(name: &str) -> String {
    format!("weir_{name}")
}

fn file(entries: &[String]) -> String {
    format!("tokens:\n{}", entries.concat())
}

fn every_right() -> Vec<String> {
    RIGHTS.iter().map(|right| entry(right, right, "")).collect()
}

impl Guarded {
    fn start(entries: &[String]) -> Self {
        let mut place = Place::new();
        place.settings.token_file = Some(place.write("tokens.yaml", &file(entries)));
        let server = place.launch();
        until("ready", || get(server.address, "/readyz").status == 200);
        Self { place, server }
    }

    fn send(&self, name: &str, method: &str, path: &str, body: &[u8]) -> Response {
        send_as(self.server.address, &secret(name), method, path, body)
    }

    fn check(&self, name: &str) -> Response {
        let body = json!({"rule": "wide", "key": "k"}).to_string();
        self.send(name, "POST", "/v1/ratelimit/check", body.as_bytes())
    }

    fn metric(&self, name: &str, label: &str) -> u64 {
        metric_in(
            &self.send("read", "GET", "/metrics", b"").text(),
            name,
            label,
        )
    }
}

#[test]
fn without_a_token_there_is_nothing_but_health() {
    let guarded = Guarded::start(&every_right());
    let address = guarded.server.address;
    assert_eq!(get(address, "/healthz").status, 200);
    for (method, path) in [
        ("POST", "/v1/sync"),
        ("POST", "/v1/ratelimit/check"),
        ("GET", "/metrics"),
        ("GET", "/no/such/path"),
    ] {
        let refused = send(address, method, path, b"");
        assert_eq!((refused.status, &*refused.problem()), (401, "unauthorized"));
        let challenge = refused.header("www-authenticate");
        assert_eq!(challenge, Some("Bearer realm=\"weir\""));
    }
    let unknown = guarded.check("nobody");
    assert_eq!(unknown.status, 401);
    let challenge = unknown.header("www-authenticate").unwrap();
    assert!(challenge.contains("invalid_token"), "{challenge}");
    assert_eq!(guarded.metric("weir_requests_refused_total", "no_token"), 4);
}

#[test]
fn a_token_does_what_its_right_says_and_is_told_what_else_would_need() {
    let guarded = Guarded::start(&every_right());
    assert_eq!(guarded.check("check").status, 200);
    let message = flush(1, "k", 5).encode_to_vec();
    assert_eq!(
        guarded.send("sync", "POST", "/v1/sync", &message).status,
        200
    );
    assert_eq!(guarded.send("read", "GET", "/metrics", b"").status, 200);
    for name in ["sync", "count", "read", "rules"] {
        let refused = guarded.check(name);
        assert_eq!((refused.status, &*refused.problem()), (403, "no-right"));
        let problem = refused.json();
        assert_eq!(problem["needs"], "check");
        assert_eq!(problem["held"], json!([name]));
        let challenge = refused.header("www-authenticate").unwrap();
        assert!(challenge.contains("insufficient_scope"), "{challenge}");
    }
    assert_eq!(
        guarded.send("check", "POST", "/v1/sync", &message).status,
        403
    );
    assert_eq!(guarded.send("read", "GET", "/v2", b"").status, 404);
}

#[test]
fn a_token_file_that_changes_is_in_force_at_once_and_a_bad_one_never() {
    let guarded = Guarded::start(&[entry("old", "check", ""), entry("read", "read", "")]);
    assert_eq!(guarded.check("old").status, 200);
    let bad = file(&[entry("new", "chekc", "")]);
    guarded.place.write("tokens.yaml", &bad);
    let refused = || guarded.metric("weir_token_files_refused_total", "");
    until("the bad file is refused", || refused() == 1);
    assert_eq!(guarded.check("old").status, 200);
    let good = file(&[entry("new", "check", "")]);
    guarded.place.write("tokens.yaml", &good);
    until("the new token is known", || {
        guarded.check("new").status == 200
    });
    assert_eq!(guarded.check("old").status, 401);
}

#[test]
fn a_token_that_asks_too_often_is_told_when_to_come_again() {
    let slow = entry("slow", "check", ", requests_per_second: 1");
    let guarded = Guarded::start(&[slow, entry("other", "check", ""), entry("read", "read", "")]);
    let mut refused = guarded.check("slow");
    for _ in 0..50 {
        if refused.status == 429 {
            break;
        }
        refused = guarded.check("slow");
    }
    assert_eq!((refused.status, &*refused.problem()), (429, "too-fast"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(refused.text().contains("the token may send 1"));
    assert_eq!(guarded.check("other").status, 200);
}

#[test]
fn a_tenant_has_one_rate_for_all_of_its_tokens() {
    let mut place = Place::new();
    let entries = [entry("a", "check", ""), entry("b", "check", "")];
    place.settings.token_file = Some(place.write("tokens.yaml", &file(&entries)));
    place.settings.tenant_requests_per_second_max = Some(1);
    let server = place.launch();
    until("ready", || get(server.address, "/readyz").status == 200);
    let guarded = Guarded { place, server };
    let statuses: Vec<u16> = (0..20)
        .flat_map(|_| ["a", "b"])
        .map(|name| guarded.check(name).status)
        .collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(statuses[0], 200);
}

#[test]
fn a_token_that_was_made_gets_in() {
    let token = Token::random().unwrap();
    let text = format!(
        "tokens:\n  - name: made\n    tenant: t\n    rights: [check]\n    sha256: {}\n",
        token.digest()
    );
    let mut place = Place::new();
    place.settings.token_file = Some(place.write("tokens.yaml", &text));
    let server = place.launch();
    until("ready", || get(server.address, "/readyz").status == 200);
    let body = json!({"rule": "wide", "key": "k"}).to_string();
    let path = "/v1/ratelimit/check";
    let answer = send_as(
        server.address,
        token.reveal(),
        "POST",
        path,
        body.as_bytes(),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn without_tokens_no_page_from_elsewhere_asks_through_a_browser() {
    let place = Place::new();
    let server = place.start();
    let ask = |origin: &str| {
        let stream = TcpStream::connect(server.address).unwrap();
        let body = json!({"rule": "wide", "key": "k"}).to_string();
        let headers = format!("origin: {origin}\r\n");
        let path = "/v1/ratelimit/check";
        try_send_over(stream, "POST", path, &headers, body.as_bytes()).unwrap()
    };
    let refused = ask("https://example.com");
    assert_eq!((refused.status, &*refused.problem()), (403, "foreign-page"));
    assert_eq!(ask("http://127.0.0.1:8080").status, 200);
}
