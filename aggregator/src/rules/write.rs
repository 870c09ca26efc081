//! Rules as a rule file has them: what [`RuleFile`](super::RuleFile) reads back.
//!
//! A match is a line for each field; what holds a second condition on the same
//! thing goes into `all`. What a rule would have by default is left out.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use limiter::{
    list::List,
    quota::{Algorithm, Quota},
    rule::{Attribute, Condition, Expect, OnFailure, Response, Rule},
};

mod flow;

use super::{
    cost, key,
    numbers::{Per, Percent, Written},
    words,
};
use flow::{Flow, scalar, texts};

/// The fields of a match in the order in which they are read; `all` is the last.
const ORDER: [&str; 14] = [
    "hosts", "paths", "methods", "headers", "cidr", "cookies", "query", "country", "asn", "ja4",
    "jwt", "key_in", "any", "not",
];

/// Writes a rule file. `comments` has lines for each rule, which stand above it.
pub(super) fn file(domain: &str, rules: &[Rule], comments: &[Vec<String>]) -> String {
    let mut out = format!("version: 1\ndomain: {}\nrules:", scalar(domain));
    if rules.is_empty() {
        return out + " []\n";
    }
    out.push('\n');
    let none = Vec::new();
    for (place, rule) in rules.iter().enumerate() {
        for comment in comments.get(place).unwrap_or(&none) {
            let _ = writeln!(out, "  # {comment}");
        }
        let _ = writeln!(out, "  - name: {}", scalar(&rule.name));
        for line in lines(rule) {
            let _ = writeln!(out, "    {line}");
        }
    }
    out
}

/// Lists by their names, in one line.
pub(super) fn mapping(lists: &BTreeMap<String, Vec<String>>) -> String {
    let lists = lists
        .iter()
        .map(|(name, values)| (scalar(name), texts(values)));
    Flow::Map(lists.collect()).to_string()
}

/// A rule's lines after its name.
fn lines(rule: &Rule) -> Vec<String> {
    let mut lines = conditions(&rule.conditions);
    if !rule.key.is_empty() {
        let parts = rule.key.iter().map(|part| key::Written(part).to_string());
        lines.push(format!("key: {}", texts(parts)));
    }
    if rule.unlimited {
        lines.push("limit: unlimited".into());
        return lines;
    }
    lines.extend(limit(&rule.quota));
    let plain = Rule::new("", rule.quota);
    let mut unless = |same: bool, name: &str, value: &dyn fmt::Display| {
        if !same {
            lines.push(format!("{name}: {value}"));
        }
    };
    unless(rule.cost == plain.cost, "cost", &cost::written(&rule.cost));
    let refund = cost::written_refund(&rule.refund);
    unless(rule.refund.is_empty(), "refund", &refund);
    unless(!rule.count_denied, "count_denied", &true);
    let scope = words::name(words::SCOPE, &rule.scope);
    unless(rule.scope == plain.scope, "scope", &scope);
    let kept = words::name(words::CONSISTENCY, &rule.consistency);
    unless(rule.consistency == plain.consistency, "consistency", &kept);
    unless(
        rule.local_cap == plain.local_cap,
        "local_cap",
        &rule.local_cap,
    );
    let tolerance = Percent(rule.tolerance_ppm);
    unless(
        rule.tolerance_ppm == plain.tolerance_ppm,
        "tolerance",
        &tolerance,
    );
    unless(rule.hold == plain.hold, "hold", &Written(rule.hold));
    let both = on_failure(rule.on_failure);
    unless(rule.on_failure == plain.on_failure, "on_failure", &both);
    let action = words::name(words::ACTION, &rule.action);
    unless(rule.action == plain.action, "action", &action);
    unless(
        rule.penalty == plain.penalty,
        "penalty",
        &Written(rule.penalty),
    );
    let headers = rule.quota_headers;
    let told = cost::written_headers(headers);
    unless(headers == plain.quota_headers, "ratelimit_headers", &told);
    let commit = words::name(words::COMMIT, &rule.commit);
    unless(rule.commit == plain.commit, "commit", &commit);
    if let Some(response) = &rule.response {
        lines.push(format!("response: {}", answer(response)));
    }
    lines
}

/// How much is allowed.
fn limit(quota: &Quota) -> Vec<String> {
    let mut lines = vec![
        format!("limit: {}", quota.limit),
        format!("window: {}", Per(quota.window)),
    ];
    if quota.algorithm != Algorithm::default() {
        let algorithm = words::name(words::ALGORITHM, &quota.algorithm);
        lines.push(format!("algorithm: {algorithm}"));
    }
    if quota.algorithm == Algorithm::TokenBucket && quota.capacity() != quota.limit.get() {
        lines.push(format!("burst: {}", quota.capacity()));
    }
    lines
}

fn on_failure(choice: OnFailure) -> String {
    let word = |fallback| words::name(words::FALLBACK, fallback);
    let (no_lease, expired) = (word(&choice.no_lease), word(&choice.lease_expired));
    format!("{{ no_lease: {no_lease}, lease_expired: {expired} }}")
}

fn answer(response: &Response) -> Flow {
    let value = |text: &str| Flow::Scalar(scalar(text));
    let mut fields = vec![(
        "status".to_owned(),
        Flow::Scalar(response.status.to_string()),
    )];
    if let Some(body) = &response.body {
        fields.push(("body".into(), value(&body.text)));
        fields.push(("content_type".into(), value(&body.content_type)));
    }
    if !response.headers.is_empty() {
        let headers = response.headers.iter();
        let headers = headers.map(|(name, text)| (scalar(name), value(text)));
        fields.push(("headers".into(), Flow::Map(headers.collect())));
    }
    Flow::Map(fields)
}

fn conditions(conditions: &[Condition]) -> Vec<String> {
    if conditions.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["match:".to_owned()];
    for (name, value) in fields(conditions) {
        match value {
            Flow::List(items) if matches!(items.first(), Some(Flow::Map(_))) => {
                lines.push(format!("  {name}:"));
                lines.extend(items.iter().map(|item| format!("    - {item}")));
            }
            value => lines.push(format!("  {name}: {value}")),
        }
    }
    lines
}

/// The same conditions in the order in which they are read from what is written.
pub(super) fn in_order(conditions: Vec<Condition>) -> Vec<Condition> {
    let mut sorted: Vec<_> = conditions.into_iter().map(nested_in_order).collect();
    sorted.sort_by_key(|one| ORDER.iter().position(|name| *name == field(one).0));
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for condition in sorted {
        let taken = first.iter().any(|other| same_place(other, &condition));
        if taken {
            rest.push(condition)
        } else {
            first.push(condition)
        }
    }
    if !rest.is_empty() {
        first.extend(in_order(rest));
    }
    first
}

fn nested_in_order(condition: Condition) -> Condition {
    let each = |lists: Vec<Vec<Condition>>| lists.into_iter().map(in_order).collect();
    match condition {
        Condition::Any(lists) => Condition::Any(each(lists)),
        Condition::None(lists) => Condition::None(each(lists)),
        other => other,
    }
}

/// Whether two conditions would stand in one place.
fn same_place(a: &Condition, b: &Condition) -> bool {
    match (field(a), field(b)) {
        ((a, Flow::Map(one)), (b, Flow::Map(other))) => {
            a == b
                && one
                    .iter()
                    .any(|(name, _)| other.iter().any(|(taken, _)| taken == name))
        }
        ((a, _), (b, _)) => a == b,
    }
}

/// The fields of a match, in the order in which they are read. What would stand
/// where something stands already goes into `all`, a match after the other.
fn fields(conditions: &[Condition]) -> Vec<(String, Flow)> {
    let (mut first, mut rest) = layer(conditions);
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (next, after) = layer(&rest);
        all.push(Flow::Map(next));
        rest = after;
    }
    if !all.is_empty() {
        first.push(("all".into(), Flow::List(all)));
    }
    first
}

/// As many conditions as have a place in one match, and the rest.
fn layer(conditions: &[Condition]) -> (Vec<(String, Flow)>, Vec<Condition>) {
    let mut fields: Vec<(&str, Flow)> = Vec::new();
    let mut rest = Vec::new();
    for condition in conditions {
        let (name, value) = field(condition);
        let taken = fields.iter_mut().find(|(taken, _)| *taken == name);
        match (taken, value) {
            (None, value) => fields.push((name, value)),
            (Some((_, Flow::Map(entries))), Flow::Map(more))
                if !more
                    .iter()
                    .any(|(key, _)| entries.iter().any(|(taken, _)| taken == key)) =>
            {
                entries.extend(more);
            }
            _ => rest.push(condition.clone()),
        }
    }
    fields.sort_by_key(|(name, _)| ORDER.iter().position(|other| other == name));
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    (fields.collect(), rest)
}

fn field(condition: &Condition) -> (&'static str, Flow) {
    match condition {
        Condition::Host(hosts) => ("hosts", texts(hosts)),
        Condition::Path(paths) => ("paths", texts(paths)),
        Condition::Method(methods) => ("methods", texts(methods)),
        Condition::Header { name, expect } => ("headers", expected(name, expect)),
        Condition::Cookie { name, expect } => ("cookies", expected(name, expect)),
        Condition::Query { name, expect } => ("query", expected(name, expect)),
        Condition::Address(blocks) => ("cidr", texts(blocks)),
        Condition::Attribute { attribute, expect } => attribute_field(attribute, expect),
        Condition::AddressIn(list) => ("cidr", in_list(list)),
        Condition::KeyIn(list) => ("key_in", Flow::Scalar(scalar(list.name()))),
        Condition::Any(lists) => ("any", alternatives(lists)),
        Condition::None(lists) => ("not", alternatives(lists)),
        // No file can ask for it.
        Condition::Unsupported => ("unsupported", Flow::List(Vec::new())),
    }
}

fn attribute_field(attribute: &Attribute, expect: &Expect) -> (&'static str, Flow) {
    let value = value(expect);
    match attribute {
        Attribute::Country => ("country", value),
        Attribute::Asn => ("asn", value),
        Attribute::Ja4 => ("ja4", value),
        Attribute::Jwt(claim) => ("jwt", Flow::Map(vec![(scalar(claim), value)])),
    }
}

fn alternatives(lists: &[Vec<Condition>]) -> Flow {
    Flow::List(lists.iter().map(|list| Flow::Map(fields(list))).collect())
}

fn expected(name: &str, expect: &Expect) -> Flow {
    Flow::Map(vec![(scalar(name), value(expect))])
}

fn value(expect: &Expect) -> Flow {
    match expect {
        Expect::Present => Flow::Scalar("present".into()),
        Expect::Absent => Flow::Scalar("absent".into()),
        Expect::OneOf(values) => match &**values {
            [one] if !matches!(&**one, "present" | "absent") => Flow::Scalar(scalar(one)),
            values => texts(values),
        },
        Expect::In(list) => in_list(list),
        Expect::Like(globs) => Flow::Map(vec![("like".into(), texts(globs))]),
    }
}

fn in_list(list: &List) -> Flow {
    Flow::Map(vec![("in".into(), Flow::Scalar(scalar(list.name())))])
}

#[cfg(test)]
mod tests {
    use limiter::{
        rule::{
            Action, Commit, Consistency, Cost, Fallback, HeaderForm, KeyPart, OnFailure,
            QuotaHeaders, Scope, StatusMatch, TellWhen, response::Body,
        },
        time::Micros,
        window::Window,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::rules::RuleFile;

    fn any_text() -> impl Strategy<Value = String> {
        let odd = [
            "null", "present", "1.10", "a: b", "#x", "\"q\"", "\\", "*x", "ü", "- a", "{}",
        ];
        let odd: Vec<String> = odd.iter().map(ToString::to_string).collect();
        prop_oneof![prop::sample::select(odd), "[ -~]{1,6}", ".{1,3}"]
    }

    fn any_expect() -> impl Strategy<Value = Expect> {
        let texts = || prop::collection::vec(any_text(), 1..3);
        prop_oneof![
            Just(Expect::Present),
            Just(Expect::Absent),
            Just(Expect::OneOf(vec![String::new()])),
            texts().prop_map(Expect::OneOf),
            texts().prop_map(Expect::Like),
        ]
    }

    fn any_condition() -> BoxedStrategy<Condition> {
        let name = || prop::sample::select(vec!["a", "x-b", "null", "2"]).prop_map(str::to_owned);
        let named = || (name(), any_expect());
        let plain = prop_oneof![
            named().prop_map(|(name, expect)| Condition::Header { name, expect }),
            named().prop_map(|(name, expect)| Condition::Cookie { name, expect }),
            named().prop_map(|(name, expect)| Condition::Query { name, expect }),
            "/[a*]{0,1}/[a-z?:#]{0,2}".prop_filter_map("a path", |path| {
                let good = limiter::rule::PathPattern::new(&path).is_ok();
                good.then(|| Condition::Path(vec![path]))
            }),
            Just(Condition::Method(vec!["GET".into(), "*".into()])),
            Just(Condition::Host(vec![
                "*.a.com".into(),
                "[2001:db8::1]".into()
            ])),
            Just(Condition::Attribute {
                attribute: Attribute::Country,
                expect: Expect::OneOf(vec!["NO".into(), "T1".into()]),
            }),
            Just(Condition::Attribute {
                attribute: Attribute::Asn,
                expect: Expect::OneOf(vec!["64500".into()]),
            }),
            named().prop_map(|(name, expect)| Condition::Attribute {
                attribute: Attribute::Jwt(name),
                expect,
            }),
            Just(Condition::Address(vec!["2001:db8::/32".parse().unwrap()])),
        ];
        let nested = |inner: BoxedStrategy<Condition>| {
            let lists = move || {
                let list = prop::collection::vec(inner.clone(), 1..3);
                prop::collection::vec(list, 1..3)
            };
            prop_oneof![
                lists().prop_map(Condition::Any),
                lists().prop_map(Condition::None)
            ]
        };
        plain.boxed().prop_recursive(2, 12, 3, nested).boxed()
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_the_same_rules(
            conditions in prop::collection::vec(any_condition(), 0..5),
            key in any_text(),
            body in any_text(),
            name in "[!-~&&[^\"\\\\]]{1,8}",
        ) {
            let limit = std::num::NonZeroU64::new(7).unwrap();
            let window = Window::new(Micros::from_millis(1_500)).unwrap();
            let quota = Quota::new(limit, window, Algorithm::TokenBucket);
            let key = [KeyPart::Constant(key), KeyPart::Optional(KeyPart::PathSegment(2).into())];
            let full = Rule {
                conditions: in_order(conditions),
                key: key.into(),
                cost: Cost::ResponseHeader {
                    name: "x-cost".into(),
                    max: 9,
                    upfront: 3,
                    default: 0,
                },
                refund: vec![StatusMatch::One(404), StatusMatch::Class(5)],
                quota_headers: QuotaHeaders {
                    form: HeaderForm::Both,
                    when: TellWhen::Always,
                },
                count_denied: true,
                scope: Scope::Global,
                consistency: Consistency::Exact,
                local_cap: 2,
                tolerance_ppm: 1,
                hold: Micros::ZERO,
                on_failure: OnFailure { no_lease: Fallback::Deny, lease_expired: Fallback::Allow },
                action: Action::Shadow,
                penalty: Micros::from_secs(90),
                commit: Commit::Fast,
                response: Some(Response {
                    status: 503,
                    body: Some(Body { content_type: "text/html; charset=utf-8".into(), text: body }),
                    headers: vec![("x-why".into(), "null".into()), ("x-empty".into(), String::new())],
                }),
                ..Rule::new(name.clone(), quota.with_burst(std::num::NonZeroU64::new(9).unwrap()))
            };
            let month = Quota::new(limit, Window::MONTH, Algorithm::FixedWindow);
            let month = Rule::new(format!("{name}3"), month);
            let rules = [full, Rule::new(format!("{name}2"), quota), month];
            let text = file(&name, &rules, &[vec!["a comment".into()]]);
            let read = RuleFile::parse("f", text.as_bytes());
            let read = read.unwrap_or_else(|problems| panic!("{problems}\n{text}"));
            prop_assert_eq!(&read.rules[..], &rules[..], "{}", text);
            prop_assert_eq!(read.domain, name);
        }
    }
}
