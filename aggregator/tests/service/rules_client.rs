//! What a test asks of the rules of a service, over HTTP.

use std::net::TcpStream;

use serde_json::{Value, json};

use crate::{
    common::{
        client::{Response, check, get, send, try_send_over, until},
        messages::RULES,
    },
    server::{Place, TestServer},
};

/// A service that has no rule file.
pub fn without_file() -> (Place, TestServer) {
    let mut place = Place::new();
    place.settings.rules = None;
    let server = ready(&place);
    (place, server)
}

/// One that may have no rules, and is ready for them.
pub fn ready(place: &Place) -> TestServer {
    let server = place.launch();
    until("it answers", || {
        get(server.address, "/v1/rules").status != 503
    });
    server
}

/// The same with `RULES` put, as revision 1.
pub fn with_rules() -> (Place, TestServer) {
    let (place, server) = without_file();
    assert_eq!(put(&server, "", RULES).json()["revision"], 1);
    (place, server)
}

pub fn put(server: &TestServer, query: &str, text: &str) -> Response {
    let path = format!("/v1/rules{query}");
    send(server.address, "PUT", &path, text.as_bytes())
}

pub fn put_if(server: &TestServer, condition: &str, text: &str) -> Response {
    let stream = TcpStream::connect(server.address).unwrap();
    let head = format!("{condition}\r\n");
    try_send_over(stream, "PUT", "/v1/rules", &head, text.as_bytes()).unwrap()
}

pub fn rollback(server: &TestServer, revision: u64) -> Response {
    let body = json!({ "revision": revision }).to_string();
    send(
        server.address,
        "POST",
        "/v1/rules/rollback",
        body.as_bytes(),
    )
}

pub fn rules(server: &TestServer) -> (String, String) {
    let answer = get(server.address, "/v1/rules");
    assert_eq!(answer.status, 200, "{}", answer.text());
    (answer.header("etag").unwrap().to_owned(), answer.text())
}

pub fn history(server: &TestServer) -> Vec<Value> {
    let answer = get(server.address, "/v1/rules/history").json();
    answer["history"].as_array().unwrap().clone()
}

/// What is left of a rule's limit under the key `a` after one more hit.
pub fn left(server: &TestServer, rule: &str) -> u64 {
    let asked = json!({"rule": rule, "key": "a"});
    let answer = check(server.address, &asked).json();
    answer["limit"].as_u64().unwrap() - answer["remaining"].as_u64().unwrap()
}

pub fn limit_four() -> String {
    RULES.replace("limit: 3,", "limit: 4,")
}
