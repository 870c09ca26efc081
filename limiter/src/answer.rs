//! What a client is told of its quota, in words: headers, and a problem document.
//!
//! `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers),
//! `X-RateLimit-*` as Envoy has them (the same draft, -03), `Retry-After` (RFC 9110),
//! and a problem document (RFC 9457) of the type that the draft registers. Every host
//! says the same.

use alloc::{
    format,
    string::{String, ToString},
};

use crate::{
    decision::Decision,
    rule::{HeaderForm, Rule},
    time::Micros,
};

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

/// The type of problem that a spent quota is, as registered.
pub const PROBLEM_TYPE: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// Its title, as registered.
pub const PROBLEM_TITLE: &str = "Request cannot be satisfied as assigned quota has been exceeded";

/// The media type of a problem document.
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// Whole seconds that a denied client has to wait, rounded up, at least one; none if
/// no wait is long enough.
pub fn wait_s(decision: &Decision) -> Option<u64> {
    decision.retry_after.map(|wait| wait.as_secs_ceil().max(1))
}

/// Tells a client that was denied: `Retry-After`, and the headers that the rule has
/// for it.
///
/// `t` of `RateLimit` is the wait that `Retry-After` names, not the time until the
/// whole limit is back: a client that heeds either comes at the same moment, and the
/// draft wants neither before the other. A request that costs more than the rule can
/// ever hold is told no time at all.
pub fn denied(rule: &Rule, decision: &Decision, add: &mut dyn FnMut(&'static str, String)) {
    let wait = wait_s(decision);
    if let Some(wait) = wait {
        add("retry-after", wait.to_string());
    }
    quota(rule, decision, wait, add);
}

/// Tells a client that was allowed, if the rule says so.
pub fn allowed(rule: &Rule, decision: &Decision, add: &mut dyn FnMut(&'static str, String)) {
    if rule.quota_headers.on_allowed() {
        told(rule, decision, add);
    }
}

/// Tells a client that was allowed, whenever the rule says so.
pub fn told(rule: &Rule, decision: &Decision, add: &mut dyn FnMut(&'static str, String)) {
    let reset = decision.reset_after.as_secs_ceil();
    quota(rule, decision, Some(reset), add);
}

fn quota(
    rule: &Rule,
    decision: &Decision,
    reset_s: Option<u64>,
    add: &mut dyn FnMut(&'static str, String),
) {
    let form = rule.quota_headers.form;
    let (name, remaining) = (quoted(&rule.name), decision.remaining);
    if matches!(form, HeaderForm::Draft | HeaderForm::Both) {
        let window = window_s(rule).map_or(String::new(), |window| format!(";w={window}"));
        add(
            "ratelimit-policy",
            format!("{name};q={}{window}", decision.limit),
        );
        let reset = reset_s.map_or(String::new(), |reset| format!(";t={reset}"));
        add("ratelimit", format!("{name};r={remaining}{reset}"));
    }
    if matches!(form, HeaderForm::XRateLimit | HeaderForm::Both) {
        let limit = decision.limit;
        let window = window_s(rule).map_or(String::new(), |window| format!(";w={window}"));
        add(
            "x-ratelimit-limit",
            format!("{limit}, {limit}{window};name={name}"),
        );
        add("x-ratelimit-remaining", remaining.to_string());
        let reset = reset_s.unwrap_or_else(|| decision.reset_after.as_secs_ceil());
        add("x-ratelimit-reset", reset.to_string());
    }
}

/// The document for a client that this rule denied.
pub fn problem(rule: &Rule, decision: &Decision, status: u16) -> String {
    format!(
        "{{\"type\":\"{PROBLEM_TYPE}\",\"title\":\"{PROBLEM_TITLE}\",\"status\":{status},\
         \"detail\":{},\"violated-policies\":[{}]}}",
        quoted(&detail(rule, decision)),
        quoted(&rule.name)
    )
}

/// The same in a sentence: for gRPC, which has no documents.
pub fn detail(rule: &Rule, decision: &Decision) -> String {
    let name = &rule.name;
    match wait_s(decision) {
        Some(1) => format!("the quota of rule {name} is spent: try again in 1 second"),
        Some(wait) => format!("the quota of rule {name} is spent: try again in {wait} seconds"),
        None => format!("rule {name} never allows so large a cost"),
    }
}

/// The window in seconds, if it is a whole number of them: the draft has no others. A
/// calendar month has none, for it is not always as long; `t` says when that ends.
fn window_s(rule: &Rule) -> Option<u64> {
    let window = rule.quota.window.fixed().map_or(0, Micros::get);
    let whole = window > 0 && window.is_multiple_of(SECOND);
    whole.then_some(window / SECOND)
}

/// A structured-field string (RFC 9651), which is a JSON string, too: printable
/// ASCII, quotes and backslashes escaped. Anything else shows as `?`.
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            ' '..='~' => out.push(letter),
            _ => out.push('?'),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{
        decision::Tier,
        quota::{Algorithm, Quota},
        rule::{QuotaHeaders, TellWhen},
        window::Window,
    };

    fn rule(form: HeaderForm, when: TellWhen, window_ms: u64) -> Rule {
        let window = Window::new(Micros::from_millis(window_ms)).unwrap();
        let limit = 5.try_into().unwrap();
        let mut rule = Rule::new("a rule", Quota::new(limit, window, Algorithm::FixedWindow));
        rule.quota_headers = QuotaHeaders { form, when };
        rule
    }

    fn decision(retry_after: Option<Micros>) -> Decision {
        Decision {
            rule: 0,
            limit: 5,
            remaining: 3,
            reset_after: Micros::from_millis(59_001),
            retry_after,
            tier: Tier::Lease,
            shadowed: false,
        }
    }

    type Tell = fn(&Rule, &Decision, &mut dyn FnMut(&'static str, String));

    fn told(tell: Tell, rule: &Rule, retry_after: Option<Micros>) -> Vec<String> {
        let mut lines = Vec::new();
        tell(rule, &decision(retry_after), &mut |name, value| {
            lines.push(format!("{name}: {value}"));
        });
        lines
    }

    #[test]
    fn a_wait_is_rounded_up_and_the_same_in_every_header() {
        let rule = rule(HeaderForm::Both, TellWhen::Denied, 60_000);
        let lines = told(denied, &rule, Some(Micros::from_millis(2_001)));
        assert_eq!(
            lines,
            [
                "retry-after: 3",
                "ratelimit-policy: \"a rule\";q=5;w=60",
                "ratelimit: \"a rule\";r=3;t=3",
                "x-ratelimit-limit: 5, 5;w=60;name=\"a rule\"",
                "x-ratelimit-remaining: 3",
                "x-ratelimit-reset: 3",
            ]
        );
        let soon = told(denied, &rule, Some(Micros::new(1)));
        assert_eq!(soon.first().unwrap(), "retry-after: 1");
    }

    #[test]
    fn a_client_that_can_never_be_allowed_is_told_no_time() {
        let rule = rule(HeaderForm::Draft, TellWhen::Denied, 1_500);
        let lines = told(denied, &rule, None);
        assert_eq!(
            lines,
            [
                "ratelimit-policy: \"a rule\";q=5",
                "ratelimit: \"a rule\";r=3"
            ]
        );
        assert!(problem(&rule, &decision(None), 429).contains("never allows"));
    }

    #[test]
    fn a_client_that_is_allowed_is_told_only_where_the_rule_says_so() {
        let told = |form, when| told(allowed, &rule(form, when, 60_000), None);
        assert!(told(HeaderForm::Both, TellWhen::Denied).is_empty());
        assert!(told(HeaderForm::None, TellWhen::Always).is_empty());
        let lines = told(HeaderForm::XRateLimit, TellWhen::Always);
        assert_eq!(lines.last().unwrap(), "x-ratelimit-reset: 60");
        let lines = told(HeaderForm::Draft, TellWhen::Always);
        assert_eq!(lines.last().unwrap(), "ratelimit: \"a rule\";r=3;t=60");
    }

    #[test]
    fn a_name_cannot_break_out_of_its_quotes() {
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(quoted("a\r\né"), r#""a???""#);
    }
}
