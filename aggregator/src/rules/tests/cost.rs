//! What a rule file can say of costs, refunds and headers.

use limiter::rule::{Cost, HeaderForm, QuotaHeaders, StatusMatch, TellWhen};

use super::{super::*, rule, said::FLEET};

fn wrong(lines: &str) -> String {
    let lines = lines.replace('\n', "\n    ");
    let text = format!(
        "version: 1\ndomain: d\nrules:\n  - name: r\n    limit: 10\n    window: 1m\n    {lines}\n"
    );
    super::said(&text)
}

#[test]
fn a_cost_is_a_number_or_a_header_and_has_its_defaults() {
    let cost = |text: &str| rule(&format!("window: 1m\ncost: {text}")).cost;
    assert_eq!(cost("3"), Cost::Fixed(3));
    assert_eq!(
        cost("{ header: X-Cost, max: 10 }"),
        Cost::RequestHeader {
            name: "x-cost".into(),
            max: 10,
            default: 1
        }
    );
    let response = |max, upfront, default| Cost::ResponseHeader {
        name: "x-cost".into(),
        max,
        upfront,
        default,
    };
    assert_eq!(
        cost("{ response_header: x-cost, max: 500, upfront: 2 }"),
        response(500, 2, 2)
    );
    assert_eq!(
        cost("{ response_header: x-cost, max: 5, default: 0 }"),
        response(5, 1, 0)
    );
}

#[test]
fn a_cost_that_cannot_be_is_refused_where_it_stands() {
    for (lines, said) in [
        ("cost: { header: x-cost }", "rules[0].cost.max: missing"),
        (
            "cost: { max: 3 }",
            "rules[0].cost: expected a number, { header, max }",
        ),
        (
            "cost: { header: x-cost, max: 11 }",
            "rules[0].cost: expected at most 10",
        ),
        (
            "cost: { header: x-cost, max: 3, default: 4 }",
            "expected at most 3, its `max`",
        ),
        ("cost: { header: x-cost, max: 3, upfront: 1 }", "upfront"),
        (
            "cost: { header: x-cost, response_header: x-cost, max: 3 }",
            "rules[0].cost.header",
        ),
        (
            "cost: { response_header: \"x cost\", max: 3 }",
            "expected a token",
        ),
        (
            "cost: { response_header: x, max: 3, upfront: 0 }",
            "rules[0].cost.upfront",
        ),
        (
            "refund: { status: [ 700 ] }",
            "a status as 404, or a class as 5xx, got \"700\"",
        ),
        ("refund: { status: [] }", "a status as 404"),
        ("refund: [ 404 ]", "a mapping of"),
        ("ratelimit_headers: draft-03", "rules[0].ratelimit_headers"),
        ("ratelimit_headers: { when: sometimes }", "denied"),
    ] {
        let error = wrong(lines);
        assert!(error.contains(said), "{lines}: {error}");
    }
}

#[test]
fn a_refund_lists_statuses_and_classes_and_headers_have_a_form_and_a_time() {
    let read = rule("window: 1m\nrefund: { status: [404, \"5xx\"] }\nratelimit_headers: both");
    assert_eq!(read.refund, [StatusMatch::One(404), StatusMatch::Class(5)]);
    let headers = |form, when| QuotaHeaders { form, when };
    assert_eq!(
        read.quota_headers,
        headers(HeaderForm::Both, TellWhen::Denied)
    );
    let always = rule("window: 1m\nrefund: { status: 503 }\nratelimit_headers: { when: always }");
    assert_eq!(
        always.quota_headers,
        headers(HeaderForm::Draft, TellWhen::Always)
    );
    let said = RuleReport::of(&always, FLEET);
    assert_eq!(
        (said.refund, &*said.ratelimit_headers),
        (vec!["503".into()], "draft, always")
    );
}
