//! `weir rules explain`: what the rules make of one request, and why.

use std::{fmt::Write, path::Path, sync::Arc};

use limiter::{
    key::HashSeed,
    request::Request,
    rule::{Condition, Cost, Expect, KeyPart, Rule},
    ruleset::{Explained, RuleSet, Unmet},
};
use serde::Serialize;

use super::{
    check::Format,
    conditions, cost,
    described::Described,
    diagnostic::Problems,
    file::{RuleFile, whole},
    key,
    numbers::Per,
    report::Limit,
    words,
};

#[derive(Debug, Serialize)]
struct Explanation {
    file: String,
    method: String,
    host: String,
    path: String,
    /// The client's, trusted proxies seen past.
    address: Option<String>,
    rules: Vec<RuleExplanation>,
}

#[derive(Debug, Serialize)]
struct RuleExplanation {
    name: String,
    /// The tier that it is for, of a rule that sets tiers apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<String>,
    applies: bool,
    /// What it counts under; empty if it does not apply, or counts all together.
    key: Vec<Value>,
    /// The counter's name, as on the wire and on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<String>,
    /// What it spends as it comes.
    cost: u64,
    /// What its response changes of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    then: Vec<String>,
    limit: Limit,
    window: String,
    algorithm: &'static str,
    action: &'static str,
    /// The first thing that keeps it from applying.
    #[serde(skip_serializing_if = "Option::is_none")]
    unmet: Option<String>,
}

#[derive(Debug, Serialize)]
struct Value {
    part: String,
    /// None if the request has no value, and the part may be missing.
    value: Option<String>,
}

/// Says what the rules in the file at `path` make of a request: the text to print,
/// which ends with a line end, or what is wrong with the file.
pub fn explain(path: &Path, request: &Described, format: Format) -> Result<String, Problems> {
    let file = path.display().to_string();
    let read = RuleFile::load(path)?;
    let rules = read.into_rule_set(1, HashSeed::default());
    let rules = rules.map_err(|error| whole(&file, error.to_string()))?;
    Ok(say(&file, &Arc::new(rules), request, format))
}

pub(super) fn say(file: &str, rules: &Arc<RuleSet>, request: &Described, format: Format) -> String {
    let request = request.seen_by(rules);
    let each = rules.rules().enumerate();
    let explained = each.filter_map(|(place, rule)| {
        let explained = rules.explain(place, &request)?;
        Some(one(rule, explained, &request))
    });
    let explanation = Explanation {
        file: file.to_owned(),
        method: request.method.clone(),
        host: request.host.clone(),
        path: request.path.clone(),
        address: request.address.map(|address| address.to_string()),
        rules: explained.collect(),
    };
    match format {
        Format::Table => table(&explanation),
        // Texts and numbers only: nothing that JSON cannot say.
        Format::Json => serde_json::to_string_pretty(&explanation).unwrap_or_default() + "\n",
    }
}

fn one(rule: &Rule, explained: Explained, request: &Described) -> RuleExplanation {
    let (counter, cost, values, unmet) = match explained {
        Explained::Applies { key, cost, values } => (Some(format!("{key:?}")), cost, values, None),
        Explained::Not(unmet) => {
            let cost = rule.cost.most_upfront();
            (None, cost, Vec::new(), Some(why(&unmet, request)))
        }
    };
    let key = rule.key.iter().zip(values).map(|(part, value)| Value {
        part: key::Written(part).to_string(),
        value: value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    });
    RuleExplanation {
        name: rule.name.clone(),
        tier: rule.tier.clone(),
        applies: counter.is_some(),
        key: key.collect(),
        counter,
        cost,
        then: then(rule),
        limit: Limit::of(rule),
        window: Per(rule.quota.window).to_string(),
        algorithm: words::name(words::ALGORITHM, &rule.quota.algorithm),
        action: words::name(words::ACTION, &rule.action),
        unmet,
    }
}

fn why(unmet: &Unmet, request: &Described) -> String {
    match unmet {
        Unmet::Condition(condition) => {
            let wanted = conditions::Written(condition);
            format!("{wanted}: {}", found(condition, request))
        }
        Unmet::Tier(condition) => {
            let wanted = conditions::Written(condition);
            format!("another tier's: {wanted}: {}", found(condition, request))
        }
        Unmet::Unlimited => "it would apply, and is unlimited".into(),
        Unmet::Key(part) => format!("there is no {} to count per", part_name(part)),
        Unmet::Cost => "it costs nothing".into(),
    }
}

/// What the response to an allowed request changes of what it has spent.
fn then(rule: &Rule) -> Vec<String> {
    let cost = match &rule.cost {
        Cost::ResponseHeader {
            name, max, default, ..
        } => Some(format!(
            "spends what response header {name} says in place of that, at most {max}, else {default}"
        )),
        Cost::Fixed(_) | Cost::RequestHeader { .. } => None,
    };
    let refund = (!rule.refund.is_empty()).then(|| {
        let statuses = cost::statuses(&rule.refund).join(", ");
        format!("spends nothing if the status is {statuses}")
    });
    cost.into_iter().chain(refund).collect()
}

fn part_name(part: &KeyPart) -> String {
    match part {
        KeyPart::Header(name) => format!("header {name}"),
        KeyPart::Cookie(name) => format!("cookie {name}"),
        KeyPart::Query(name) => format!("query parameter {name}"),
        KeyPart::Address { .. } => "client address".into(),
        KeyPart::Attribute(attribute) => format!("{attribute} known of it"),
        KeyPart::PathSegment(place) => format!("segment {place} of the path"),
        other => key::Written(other).to_string(),
    }
}

/// What the request has in place of what was wanted.
fn found(condition: &Condition, request: &Described) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match condition {
        Condition::Host(_) => format!("the host is {:?}", text(request.host())),
        Condition::Path(_) => format!("the path is {:?}", text(request.path())),
        Condition::Method(_) => format!("the method is {}", text(request.method())),
        Condition::KeyIn(_) => "the key is not in it".into(),
        Condition::Address(_) | Condition::AddressIn(_) => match request.address() {
            Some(address) => format!("the client is {address}"),
            None => "the client's address is not known".into(),
        },
        Condition::Header { name, expect } => match request.header(name) {
            Some(value) => format!("it is {:?}", text(value)),
            None => missing(expect),
        },
        Condition::Cookie { expect, .. } | Condition::Query { expect, .. } => match expect {
            Expect::Absent => "it is there".into(),
            Expect::Present => "it is not there".into(),
            Expect::OneOf(_) | Expect::In(_) | Expect::Like(_) => {
                "it is not there, or is something else".into()
            }
        },
        Condition::Attribute { attribute, expect } => match request.attribute(attribute) {
            Some(value) => format!("it is {:?}", text(value)),
            None if *expect == Expect::Absent => missing(expect),
            None => "it is not known".into(),
        },
        Condition::Any(_) => "none of these holds".into(),
        Condition::None(_) => "one of these holds".into(),
        Condition::Unsupported => "it is not understood".into(),
    }
}

fn missing(expect: &Expect) -> String {
    match expect {
        Expect::Absent => "it is there".into(),
        _ => "it is not there".into(),
    }
}

fn table(said: &Explanation) -> String {
    let mut out = format!("{} {}{}", said.method, said.host, said.path);
    if let Some(address) = &said.address {
        let _ = write!(out, " from {address}");
    }
    out.push('\n');
    let count = said.rules.iter().filter(|rule| rule.applies).count();
    let _ = writeln!(
        out,
        "{}: {count} of {} rules apply",
        said.file,
        said.rules.len()
    );
    for rule in &said.rules {
        let verdict = if rule.applies { "applies" } else { "does not" };
        let tier = rule.tier.as_ref().map(|tier| format!("@{tier}"));
        let _ = writeln!(
            out,
            "\n{verdict:<9} {}{}",
            rule.name,
            tier.unwrap_or_default()
        );
        match &rule.unmet {
            Some(unmet) => {
                let _ = writeln!(out, "    {unmet}");
            }
            None => applied(&mut out, rule),
        }
    }
    out
}

fn applied(out: &mut String, rule: &RuleExplanation) {
    let shadow = if rule.action == "shadow" {
        ", only watches"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "    spends {} of {} per {}, {}{shadow}",
        rule.cost, rule.limit, rule.window, rule.algorithm
    );
    for then in &rule.then {
        let _ = writeln!(out, "    then {then}");
    }
    for Value { part, value } in &rule.key {
        let value = value
            .as_ref()
            .map_or("(missing)".into(), |value| format!("{value:?}"));
        let _ = writeln!(out, "    counts under {part} = {value}");
    }
    if rule.key.is_empty() {
        out.push_str("    counts all such requests together\n");
    }
    if let Some(counter) = &rule.counter {
        let _ = writeln!(out, "    counter {counter}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "version: 1
domain: d
trusted_proxies: 10.0.0.0/8
rules:
  - { name: keyed, match: { paths: /v1/**, not: { headers: { x-plan: paid } } }, key: [ ip/24, 'header.x-key?', query.q ], limit: 10, window: 1m, cost: 2 }
  - { name: posts, match: { methods: GET }, limit: 5, window: 1s, algorithm: fixed_window, action: shadow }
";

    fn said(line: &str, headers: &[&str], format: Format) -> String {
        let headers: Vec<_> = headers.iter().map(ToString::to_string).collect();
        let request = Described::new(line, &headers, Some([10, 0, 0, 1].into())).unwrap();
        let file = RuleFile::parse("r.yaml", RULES.as_bytes()).unwrap();
        let rules = Arc::new(file.into_rule_set(1, HashSeed::default()).unwrap());
        say("r.yaml", &rules, &request, format)
    }

    #[test]
    fn a_rule_that_applies_shows_what_it_counts_under_and_another_why_it_does_not() {
        let text = said(
            "POST https://api.example.com/v1/x?q=a+b",
            &["X-Forwarded-For: 192.0.2.7"],
            Format::Table,
        );
        let (before, after) = text.split_once("    counter ").unwrap();
        let expected = "POST api.example.com/v1/x?q=a+b from 192.0.2.7
r.yaml: 1 of 2 rules apply

applies   keyed
    spends 2 of 10 per 1m, sliding_window
    counts under ip/24/64 = \"192.0.2.0\"
    counts under header.x-key? = (missing)
    counts under query.q = \"a b\"
";
        assert_eq!(before, expected);
        let (counter, after) = after.split_once('\n').unwrap();
        assert_eq!(counter.len(), 32);
        assert_eq!(
            after,
            "\ndoes not  posts\n    methods GET: the method is POST\n"
        );
    }

    #[test]
    fn the_first_thing_that_keeps_a_rule_from_applying_is_said_in_words() {
        let json = |line: &str, headers: &[&str]| {
            let said = said(line, headers, Format::Json);
            serde_json::from_str::<serde_json::Value>(&said).unwrap()
        };
        let unmet = |line: &str, headers: &[&str]| json(line, headers)["rules"][0]["unmet"].clone();
        assert_eq!(unmet("GET /v2", &[]), "paths /v1/**: the path is \"/v2\"");
        assert_eq!(
            unmet("GET /v1", &["x-plan: paid"]),
            "not (header x-plan = paid): one of these holds"
        );
        assert_eq!(
            unmet("GET /v1", &[]),
            "there is no query parameter q to count per"
        );
        let applies = json("GET /v1?q=", &["x-key: k"]);
        assert_eq!(applies["rules"][0]["applies"], true);
        assert_eq!(applies["rules"][0]["key"][1]["value"], "k");
        assert_eq!(applies["rules"][1]["action"], "shadow");
        assert_eq!(applies["address"], "10.0.0.1");
    }

    #[test]
    fn a_description_that_is_none_is_refused_with_what_would_be_right() {
        let wrong = |request: &str, header: &str| {
            Described::new(request, &[header.to_owned()], None)
                .unwrap_err()
                .to_string()
        };
        for request in ["GET", "GET x", " / ", "GET /a b"] {
            assert!(
                wrong(request, "a: b").starts_with("request: expected a method"),
                "{request}"
            );
        }
        assert!(wrong("GET /", "novalue").starts_with("header: expected a name, a colon"));
    }
}
