//! The harness does what the other tests rely on, shown with the shipped module
//! and without any rule.

use weir_tests::envoy::Envoy;
use weir_tests::envoy_config::{Filter, Setup};
use weir_tests::http::{get, request};
use weir_tests::upstream::{Upstream, response};

#[test]
fn requests_pass_through_envoy_and_the_filter_to_the_upstream() {
    let upstream =
        Upstream::answering(|request| response(201, &[("x-seen", &request.line)], &request.body));
    let envoy = Envoy::start(
        Setup::new(weir_tests::envoy::weir_filter(""))
            .workers(2)
            .upstream(upstream.address()),
    );
    let mut connection = envoy.connect();
    let answer = connection
        .send(&request("POST", "/a?b=c", &[], b"hello"))
        .expect("an answer");
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("x-seen"), Some("POST /a?b=c HTTP/1.1"));
    assert_eq!(answer.text(), "hello");
    let answer = connection
        .send(&get("/again", &[]))
        .expect("the connection stays open");
    assert_eq!(answer.status, 201);
    assert_eq!(upstream.seen(), 2);
}

#[test]
fn metrics_of_envoy_can_be_read() {
    let envoy = Envoy::start(Setup::new(Filter::Bare));
    assert_eq!(envoy.get("/", &[]).text(), "envoy\n");
    let requests = envoy.metrics().sum(
        "envoy_http_downstream_rq_total",
        &[("envoy_http_conn_manager_prefix", "main")],
    );
    assert_eq!(requests, Some(1.0));
    assert_eq!(envoy.stat("http.main.downstream_rq_total"), 1);
}

#[test]
fn a_filter_is_replaced_while_connections_stay_open() {
    let envoy = Envoy::start(Setup::new(Filter::Bare));
    let address = envoy.address();
    assert!(envoy.reconfigure("{}"));
    assert_eq!(envoy.get("/", &[]).status, 200);
    assert_eq!(envoy.address(), address);
}
