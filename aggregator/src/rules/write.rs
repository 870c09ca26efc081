//! Rules as a rule file has them: what [`RuleFile`](super::RuleFile) reads back.
//!
//! A match is a line for each field; what holds a second condition on the same
//! thing goes into `all`. What a rule would have by default is left out.

use std::fmt::{self, Write};

use limiter::{
    quota::Algorithm,
    rule::{Condition, Expect, Rule},
};

use super::{
    key,
    numbers::{Percent, Written},
    words,
};

/// The fields of a match in the order in which they are read; `all` is the last.
const ORDER: [&str; 9] = [
    "hosts", "paths", "methods", "headers", "cidr", "cookies", "query", "any", "not",
];

/// A value in one line.
enum Flow {
    Scalar(String),
    List(Vec<Flow>),
    Map(Vec<(String, Flow)>),
}

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

/// A rule's lines after its name.
fn lines(rule: &Rule) -> Vec<String> {
    let mut lines = conditions(&rule.conditions);
    if !rule.key.is_empty() {
        let parts = rule.key.iter().map(|part| key::Written(part).to_string());
        lines.push(format!("key: {}", texts(parts)));
    }
    let quota = &rule.quota;
    lines.push(format!("limit: {}", quota.limit));
    lines.push(format!("window: {}", Written(quota.window.length())));
    let plain = Rule::new("", *quota);
    if quota.algorithm != Algorithm::default() {
        lines.push(format!(
            "algorithm: {}",
            words::name(words::ALGORITHM, &quota.algorithm)
        ));
    }
    if quota.algorithm == Algorithm::TokenBucket && quota.capacity() != quota.limit.get() {
        lines.push(format!("burst: {}", quota.capacity()));
    }
    let mut unless = |same: bool, name: &str, value: &dyn fmt::Display| {
        if !same {
            lines.push(format!("{name}: {value}"));
        }
    };
    unless(rule.cost == plain.cost, "cost", &rule.cost);
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
    let failure = |fallback| words::name(words::FALLBACK, fallback);
    let (no_lease, expired) = (
        failure(&rule.on_failure.no_lease),
        failure(&rule.on_failure.lease_expired),
    );
    let both = format!("{{ no_lease: {no_lease}, lease_expired: {expired} }}");
    unless(rule.on_failure == plain.on_failure, "on_failure", &both);
    let action = words::name(words::ACTION, &rule.action);
    unless(rule.action == plain.action, "action", &action);
    unless(
        rule.penalty == plain.penalty,
        "penalty",
        &Written(rule.penalty),
    );
    lines
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

/// The fields of a match, in the order in which they are read.
fn fields(conditions: &[Condition]) -> Vec<(String, Flow)> {
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
    let mut fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    if !rest.is_empty() {
        fields.push((
            "all".into(),
            Flow::List(vec![Flow::Map(self::fields(&rest))]),
        ));
    }
    fields
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
        Condition::Any(lists) => ("any", alternatives(lists)),
        Condition::None(lists) => ("not", alternatives(lists)),
        // No file can ask for it.
        Condition::Unsupported => ("unsupported", Flow::List(Vec::new())),
    }
}

fn alternatives(lists: &[Vec<Condition>]) -> Flow {
    Flow::List(lists.iter().map(|list| Flow::Map(fields(list))).collect())
}

fn expected(name: &str, expect: &Expect) -> Flow {
    let value = match expect {
        Expect::Present => Flow::Scalar("present".into()),
        Expect::Absent => Flow::Scalar("absent".into()),
        Expect::OneOf(values) => match &**values {
            [one] if !matches!(&**one, "present" | "absent") => Flow::Scalar(scalar(one)),
            values => texts(values),
        },
        Expect::Like(globs) => Flow::Map(vec![("like".into(), texts(globs))]),
    };
    Flow::Map(vec![(scalar(name), value)])
}

fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Flow {
    let text = |value: T| Flow::Scalar(scalar(&value.to_string()));
    Flow::List(values.into_iter().map(text).collect())
}

/// A text as a scalar, in quotes if anything could take it for something else.
fn scalar(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-+*".contains(&byte);
    let first = text.bytes().next();
    let starts = first.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"/_.".contains(&byte));
    let word = matches!(
        text,
        "null" | "Null" | "NULL" | "true" | "false" | "yes" | "no"
    );
    let plain = starts && !word && text.bytes().all(plain);
    // JSON's way to quote is one of YAML's.
    let quoted = || serde_json::to_string(text).unwrap_or_default();
    if plain { text.into() } else { quoted() }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(text) => f.write_str(text),
            Self::List(items) => {
                let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
            Self::Map(entries) => {
                let entry = |(name, value): &(String, Flow)| format!("{name}: {value}");
                let texts: Vec<_> = entries.iter().map(entry).collect();
                write!(f, "{{ {} }}", texts.join(", "))
            }
        }
    }
}
