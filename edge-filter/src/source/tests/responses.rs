//! The second phase of a request, and who is told what.

use super::*;

/// A response of this status.
struct Response(u16);

impl limiter::edge::Answered for Response {
    fn status(&self) -> u16 {
        self.0
    }

    fn header(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }
}

/// One request a day, given back for a 5xx; whoever is allowed is told.
fn settled(rule: &mut Rule) {
    rule.refund = vec![limiter::rule::StatusMatch::Class(5)];
    rule.quota_headers.when = limiter::rule::TellWhen::Always;
}

#[test]
fn a_response_settles_what_was_spent_and_tells_the_client() {
    let mut pair = Pair::with(2, Consistency::Edge, settled);
    for request in [1, 2, 3] {
        assert_eq!(pair.request(request), Outcome::Pass, "{request}");
        assert!(pair.source.awaits(request));
        let headers = pair
            .source
            .handle_response(request, &Response(503), pair.now);
        let header = |name: &str| headers.iter().any(|(other, _)| other == name);
        assert!(header("ratelimit") && header("ratelimit-policy"));
        assert!(!pair.source.awaits(request), "once");
    }
    for request in [4, 5] {
        assert_eq!(pair.request(request), Outcome::Pass);
        pair.source
            .handle_response(request, &Response(200), pair.now);
    }
    assert!(matches!(pair.request(6), Outcome::Refuse(_)));
    assert!(!pair.source.awaits(6), "it is answered already");
}

#[test]
fn a_request_that_ends_without_a_response_is_forgotten_and_stays_spent() {
    let mut pair = Pair::with(1, Consistency::Edge, settled);
    assert_eq!(pair.request(1), Outcome::Pass);
    pair.source.forget(1);
    assert!(!pair.source.awaits(1));
    assert!(
        pair.source
            .handle_response(1, &Response(503), pair.now)
            .is_empty()
    );
    assert!(matches!(pair.request(2), Outcome::Refuse(_)));
}

#[test]
fn without_a_rule_that_cares_no_response_is_waited_for() {
    let mut pair = Pair::new(2, Consistency::Edge);
    assert_eq!(pair.request(1), Outcome::Pass);
    assert!(!pair.source.awaits(1));
}

#[test]
fn who_asks_why_is_told_in_a_header_and_for_the_log() {
    let mut pair = Pair::new(1, Consistency::Edge);
    pair.source.set_explain(Explain {
        header: Some("x-why".into()),
        log: true,
    });
    assert_eq!(pair.request(1), Outcome::Pass);
    let headers = pair.source.handle_response(1, &Response(200), pair.now);
    let expected = "\"all\";verdict=allow;tier=lease;remaining=0;age_ms=0";
    assert_eq!(headers, [("x-why".into(), expected.to_owned())]);
    let line = expected.to_owned();
    let logged = Effect::Explain { request: 1, line };
    assert!(pair.effects().contains(&logged));
    let Outcome::Refuse(refusal) = pair.request(2) else {
        panic!("it should be refused");
    };
    let (name, line) = refusal.headers.last().expect("a header");
    assert_eq!(name, "x-why");
    assert!(
        line.starts_with("\"all\";verdict=deny;tier=lease"),
        "{line}"
    );
}
