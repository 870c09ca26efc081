//! AWS WAF's rate-based statements.

use limiter::{
    rule::{Action, Attribute, KeyPart},
    time::Micros,
};

use super::*;

const SOURCE: Source = Source::AwsWaf;

fn acl(rate: &str) -> String {
    format!(
        r#"{{"Name": "acl", "Rules": [{{"Name": "r", "Priority": 1, "Action": {{"Block": {{}}}},
        "Statement": {{"RateBasedStatement": {{"Limit": 100, {rate}}}}}}}]}}"#
    )
}

fn scoped(statement: &str) -> String {
    acl(&format!(
        r#""AggregateKeyType": "IP", "ScopeDownStatement": {statement}"#
    ))
}

fn bytes(field: &str, constraint: &str, wanted: &str) -> String {
    format!(
        r#"{{"ByteMatchStatement": {{"SearchString": "{wanted}", "FieldToMatch": {field},
        "PositionalConstraint": "{constraint}", "TextTransformations": [{{"Priority": 0, "Type": "NONE"}}]}}}}"#
    )
}

#[test]
fn a_scope_down_statement_is_what_the_rule_matches() {
    let path = |constraint, wanted| bytes(r#"{"UriPath": {}}"#, constraint, wanted);
    let agent = bytes(
        r#"{"SingleHeader": {"Name": "User-Agent"}}"#,
        "CONTAINS",
        "curl",
    );
    let get = bytes(r#"{"Method": {}}"#, "EXACTLY", "GET");
    let request = request("GET /api/v1/x", &["user-agent: curl/8"], "192.0.2.7");
    for (statement, expected) in [
        (path("STARTS_WITH", "/api"), true),
        (path("EXACTLY", "/api"), false),
        (path("ENDS_WITH", "/x"), true),
        (path("CONTAINS", "/v1/"), true),
        // The same, as the API has it.
        (path("STARTS_WITH", "L2FwaQ=="), true),
        (
            format!(r#"{{"AndStatement": {{"Statements": [{agent}, {get}]}}}}"#),
            true,
        ),
        (
            format!(
                r#"{{"OrStatement": {{"Statements": [{}, {agent}]}}}}"#,
                path("EXACTLY", "/")
            ),
            true,
        ),
        (
            format!(r#"{{"NotStatement": {{"Statement": {agent}}}}}"#),
            false,
        ),
        (
            format!(
                r#"{{"NotStatement": {{"Statement": {{"AndStatement": {{"Statements": [{get}, {}]}}}}}}}}"#,
                path("EXACTLY", "/")
            ),
            true,
        ),
    ] {
        let rules = rules(SOURCE, &scoped(&statement));
        assert_eq!(!met(&rules, &request).is_empty(), expected, "{statement}");
    }
}

#[test]
fn the_key_is_what_the_statement_aggregates_by() {
    let keys = r#""AggregateKeyType": "CUSTOM_KEYS", "EvaluationWindowSec": 60, "CustomKeys": [
        {"IP": {}}, {"HTTPMethod": {}},
        {"Header": {"Name": "X-Key", "TextTransformations": [{"Priority": 0, "Type": "NONE"}]}},
        {"QueryArgument": {"Name": "q", "TextTransformations": [{"Priority": 0, "Type": "NONE"}]}}]"#;
    let rules = rules(SOURCE, &acl(keys));
    let asked = |line, headers: &[&str]| met(&rules, &request(line, headers, "192.0.2.7"));
    assert_eq!(asked("GET /?q=1", &["x-key: k"]), ["r 192.0.2.7 GET k 1"]);
    // Who lacks a part of the key is not counted.
    assert_eq!(asked("GET /", &["x-key: k"]), [""; 0]);
    let rule = rules.rule(0).unwrap();
    assert_eq!(rule.quota.window.fixed(), Some(Micros::from_secs(60)));
    assert!(rule.count_denied);
    let all = self::rule(SOURCE, &acl(r#""AggregateKeyType": "CONSTANT""#));
    assert!(all.key.is_empty());
    assert_eq!(all.quota.window.fixed(), Some(Micros::from_secs(300)));
}

#[test]
fn count_only_watches_and_allow_is_no_limit() {
    let text = acl(r#""AggregateKeyType": "IP""#);
    let count = text.replace(r#""Block""#, r#""Count""#);
    assert_eq!(rule(SOURCE, &count).action, Action::Shadow);
    let allow = report(SOURCE, &text.replace(r#""Block""#, r#""Allow""#));
    assert!(
        allow.contains("dropped: Action Allow: nothing that a limit does"),
        "{allow}"
    );
}

#[test]
fn a_country_a_network_and_a_fingerprint_are_what_the_edge_knows() {
    let known = |country: &str, asn: &str| {
        let told = [format!("country={country}"), format!("asn={asn}")];
        request("GET /", &[], "192.0.2.7")
            .with_attributes(&told)
            .unwrap()
    };
    let country = scoped(r#"{"GeoMatchStatement": {"CountryCodes": ["NO", "SE"]}}"#);
    let asn = scoped(r#"{"AsnMatchStatement": {"AsnList": [64500]}}"#);
    for (text, request, expected) in [
        (&country, known("NO", "1"), true),
        (&country, known("DE", "1"), false),
        (&asn, known("DE", "64500"), true),
        (&asn, known("DE", "1"), false),
        (&asn, super::request("GET /", &[], "192.0.2.7"), false),
    ] {
        let met = met(&rules(SOURCE, text), &request);
        assert_eq!(!met.is_empty(), expected, "{text} {met:?}");
    }
    let keyed = |way: &str| {
        acl(&format!(
            r#""AggregateKeyType": "CUSTOM_KEYS", "CustomKeys": [{{"ASN": {{}}}},
            {{"JA4Fingerprint": {{"FallbackBehavior": "{way}"}}}}]"#
        ))
    };
    let parts = [Attribute::Asn, Attribute::Ja4].map(KeyPart::Attribute);
    assert_eq!(rule(SOURCE, &keyed("NO_MATCH")).key, parts);
    assert!(report(SOURCE, &keyed("MATCH")).contains("1 dropped"));
}

#[test]
fn what_a_statement_asks_that_no_rule_can_drops_the_rule() {
    for (statement, said) in [
        (
            r#"{"GeoMatchStatement": {"ForwardedIPConfig": {"HeaderName": "x"}}}"#,
            "its CountryCodes is missing",
        ),
        (
            r#"{"IPSetReferenceStatement": {"ARN": "arn"}}"#,
            "a set that is kept elsewhere",
        ),
        (
            r#"{"LabelMatchStatement": {"Scope": "LABEL", "Key": "k"}}"#,
            "LabelMatchStatement asks",
        ),
    ] {
        let said_of = report(SOURCE, &scoped(statement));
        assert!(said_of.contains(said), "{said_of}");
        assert!(said_of.contains("1 dropped"), "{said_of}");
    }
}
