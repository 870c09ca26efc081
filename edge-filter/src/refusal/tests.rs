//! What a refused client reads, byte for byte.

use core::num::NonZeroU64;

use limiter::decision::Tier;
use limiter::quota::{Algorithm, Quota};
use limiter::time::Micros;
use limiter::window::Window;

use super::*;

fn rule(name: &str, window: Micros) -> Rule {
    let window = Window::new(window).expect("a window");
    let limit = NonZeroU64::new(100).expect("a limit");
    Rule::new(name, Quota::new(limit, window, Algorithm::SlidingWindow))
}

fn denied(retry_after: Option<Micros>) -> Decision {
    Decision {
        rule: 0,
        limit: 100,
        remaining: 0,
        reset_after: Micros::from_secs(90),
        retry_after,
        tier: Tier::Lease,
        shadowed: false,
    }
}

fn header<'a>(refusal: &'a Refusal, name: &str) -> Option<&'a str> {
    refusal
        .headers
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, value)| value.as_str())
}

#[test]
fn a_denied_client_is_told_when_to_come_back_in_every_way_alike() {
    let refusal = Refusal::new(
        &rule("per-key", Micros::from_secs(60)),
        &denied(Some(Micros::new(6_000_001))),
    );
    assert_eq!(refusal.status, 429);
    assert_eq!(header(&refusal, "retry-after"), Some("7"));
    assert_eq!(header(&refusal, "ratelimit"), Some("\"per-key\";r=0;t=7"));
    assert_eq!(
        header(&refusal, "ratelimit-policy"),
        Some("\"per-key\";q=100;w=60")
    );
    assert_eq!(refusal.reason, "per-key:lease");
}

#[test]
fn a_month_is_no_number_of_seconds() {
    let mut rule = rule("plan", Micros::from_secs(60));
    rule.quota = Quota::new(rule.quota.limit, Window::MONTH, Algorithm::FixedWindow);
    let refusal = Refusal::new(&rule, &denied(Some(Micros::from_secs(9))));
    assert_eq!(header(&refusal, "ratelimit-policy"), Some("\"plan\";q=100"));
    assert_eq!(header(&refusal, "ratelimit"), Some("\"plan\";r=0;t=9"));
}

#[test]
fn a_wait_of_no_time_is_a_second_since_no_shorter_one_can_be_said() {
    let refusal = Refusal::new(
        &rule("r", Micros::from_secs(1)),
        &denied(Some(Micros::ZERO)),
    );
    assert_eq!(header(&refusal, "retry-after"), Some("1"));
}

#[test]
fn a_request_that_can_never_pass_is_told_no_time() {
    let refusal = Refusal::new(&rule("r", Micros::from_secs(60)), &denied(None));
    assert_eq!(header(&refusal, "retry-after"), None);
    assert_eq!(header(&refusal, "ratelimit"), Some("\"r\";r=0"));
}

#[test]
fn a_window_of_half_a_second_is_not_named_in_seconds() {
    let refusal = Refusal::new(&rule("r", Micros::from_millis(500)), &denied(None));
    assert_eq!(header(&refusal, "ratelimit-policy"), Some("\"r\";q=100"));
}

#[test]
fn a_rule_name_cannot_break_out_of_a_header_or_the_body() {
    let refusal = Refusal::new(
        &rule("a\"b\\c\r\nd é", Micros::from_secs(60)),
        &denied(None),
    );
    assert_eq!(
        header(&refusal, "ratelimit"),
        Some("\"a\\\"b\\\\c??d ?\";r=0")
    );
    assert_eq!(refusal.reason, "a\"b\\c__d__:lease");
    let body: serde_json::Value = serde_json::from_str(&refusal.body).expect("the body is JSON");
    assert_eq!(
        body.pointer("/violated-policies/0")
            .and_then(|v| v.as_str()),
        Some("a\"b\\c??d ?")
    );
}

#[test]
fn a_grpc_client_is_told_in_grpc_s_words_and_never_of_a_body() {
    let refusal = Refusal::new(
        &rule("per-key", Micros::from_secs(60)),
        &denied(Some(Micros::from_secs(7))),
    );
    let grpc = refusal.grpc();
    assert_eq!(grpc.status, 8);
    assert_eq!(
        grpc.message,
        "the quota of rule per-key is spent: try again in 7 seconds"
    );
    let names: Vec<&str> = grpc.headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["retry-after", "ratelimit-policy", "ratelimit"]);
    for (content_type, call) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("application/grpc;x=1", true),
        ("application/grpc-web", false),
        ("application/json", false),
        ("", false),
    ] {
        assert_eq!(is_grpc(content_type.as_bytes()), call, "{content_type}");
    }
}

#[test]
fn a_rule_s_own_answer_is_given_with_the_headers_that_every_denial_has() {
    use limiter::rule::response::{Body, Response};
    let mut own = rule("r", Micros::from_secs(60));
    own.response = Some(Response {
        status: 403,
        body: Some(Body {
            content_type: "text/html".into(),
            text: "<p>later".into(),
        }),
        headers: vec![("x-why".into(), "limit".into())],
    });
    let refusal = Refusal::new(&own, &denied(Some(Micros::from_secs(7))));
    assert_eq!((refusal.status, &*refusal.body), (403, "<p>later"));
    assert_eq!(header(&refusal, "content-type"), Some("text/html"));
    assert_eq!(header(&refusal, "x-why"), Some("limit"));
    assert_eq!(header(&refusal, "retry-after"), Some("7"));

    own.response = Some(Response {
        status: 503,
        ..Response::default()
    });
    let refusal = Refusal::new(&own, &denied(None));
    assert_eq!(refusal.status, 503);
    assert!(refusal.body.contains("\"status\":503"), "{}", refusal.body);
    assert_eq!(
        header(&refusal, "content-type"),
        Some("application/problem+json")
    );
}
