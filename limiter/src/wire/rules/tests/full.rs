//! A rule that has everything that a rule can have.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    quota::{Algorithm, Quota},
    rule::{
        Action, Attribute, Commit, Condition, Consistency, Cost, Expect, Fallback, HeaderForm,
        KeyPart, OnFailure, QuotaHeaders, Response, Rule, Scope, StatusMatch, TellWhen,
        response::Body,
    },
    time::Micros,
    window::Window,
};

fn answer() -> Response {
    Response {
        status: 403,
        body: Some(Body {
            content_type: "text/plain".into(),
            text: "slow down".into(),
        }),
        headers: vec![("x-why".into(), "limit".into())],
    }
}

pub(super) fn full() -> Rule {
    let limit = 100.try_into().unwrap();
    let window = Window::new(Micros::from_secs(60)).unwrap();
    let quota = Quota::new(limit, window, Algorithm::TokenBucket);
    Rule {
        name: "full".into(),
        tier: None,
        when: Vec::new(),
        unlimited: false,
        conditions: conditions(),
        key: key(),
        quota: quota.with_burst(200.try_into().unwrap()),
        cost: by_response(),
        refund: vec![StatusMatch::One(404), StatusMatch::Class(5)],
        count_denied: true,
        scope: Scope::Global,
        consistency: Consistency::Exact,
        local_cap: 7,
        tolerance_ppm: 30_000,
        hold: Micros::from_millis(9),
        on_failure: OnFailure {
            no_lease: Fallback::Deny,
            lease_expired: Fallback::Allow,
        },
        action: Action::Shadow,
        penalty: Micros::from_secs(3),
        commit: Commit::Fast,
        response: Some(answer()),
        quota_headers: QuotaHeaders {
            form: HeaderForm::Both,
            when: TellWhen::Always,
        },
    }
}

fn cookie(name: &str, expect: Expect) -> Condition {
    let name = name.into();
    Condition::Cookie { name, expect }
}

fn by_response() -> Cost {
    Cost::ResponseHeader {
        name: "x-cost".into(),
        max: 9,
        upfront: 2,
        default: 3,
    }
}

fn conditions() -> Vec<Condition> {
    let texts = |text: &str| -> Vec<String> { vec![text.to_string(), "b".to_string()] };
    let header = |expect| Condition::Header {
        name: "x-key".into(),
        expect,
    };
    vec![
        Condition::Host(texts("*.a.com")),
        Condition::Path(vec!["/v1/**".into()]),
        Condition::Method(texts("GET")),
        header(Expect::Present),
        header(Expect::Absent),
        header(Expect::OneOf(texts("v"))),
        Condition::Address(vec!["10.0.0.0/8".parse().unwrap()]),
        header(Expect::Like(texts("*bot*"))),
        cookie("sid", Expect::Absent),
        Condition::Query {
            name: "q".into(),
            expect: Expect::Present,
        },
        Condition::Attribute {
            attribute: Attribute::Country,
            expect: Expect::OneOf(vec!["NO".into()]),
        },
        Condition::Attribute {
            attribute: Attribute::Jwt("plan".into()),
            expect: Expect::Present,
        },
        Condition::Any(vec![
            vec![Condition::Method(texts("GET")), header(Expect::Present)],
            vec![Condition::None(vec![vec![header(Expect::Absent)]])],
        ]),
    ]
}

fn key() -> Vec<KeyPart> {
    vec![
        KeyPart::Address {
            v4_bits: 24,
            v6_bits: 64,
        },
        KeyPart::Header("x-key".into()),
        KeyPart::Cookie("sid".into()),
        KeyPart::Query("q".into()),
        KeyPart::Path,
        KeyPart::PathSegment(2),
        KeyPart::Method,
        KeyPart::Host,
        KeyPart::Attribute(Attribute::Asn),
        KeyPart::Attribute(Attribute::Jwt("sub".into())),
        KeyPart::Constant("c".into()),
        KeyPart::Optional(KeyPart::Header("x-key".into()).into()),
    ]
}
