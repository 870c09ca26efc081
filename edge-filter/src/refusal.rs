//! What a client is told that has to wait.
//!
//! Status 429 (RFC 6585) with `Retry-After` (RFC 9110), `RateLimit-Policy` and
//! `RateLimit` (draft-ietf-httpapi-ratelimit-headers) and a problem document
//! (RFC 9457) that names the rule; or the rule's own status, body and headers.

use core::fmt::Write;
use std::borrow::Cow;

use limiter::decision::Decision;
use limiter::rule::Rule;
use limiter::time::Micros;

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

/// The problem's type, registered with IANA by the RateLimit draft.
const PROBLEM: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// What such a document is.
const PROBLEM_TYPE: &str = "application/problem+json";

/// An answer that turns a request away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status code.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// The body.
    pub body: String,
    /// For the access log: the rule, and who decided.
    pub reason: String,
}

impl Refusal {
    /// The answer when `rule` denied with this decision.
    ///
    /// `t` of `RateLimit` is the wait that `Retry-After` names, not the time
    /// until the whole limit is back: a client that heeds either comes at the
    /// same moment, and the draft wants neither before the other. A request that
    /// costs more than the rule can ever hold is told no time at all.
    #[must_use]
    pub fn new(rule: &Rule, decision: &Decision) -> Self {
        let name = quoted(&rule.name);
        let wait = decision.retry_after.map(|wait| wait.as_secs_ceil().max(1));
        let own = rule.response.clone().unwrap_or_default();
        let (content_type, body) = match own.body {
            Some(body) => (body.content_type, body.text),
            None => (PROBLEM_TYPE.to_owned(), problem(&rule.name, own.status)),
        };
        let mut headers: Vec<(Cow<'static, str>, String)> = Vec::new();
        let mut add = |name: &'static str, value| headers.push((name.into(), value));
        add("content-type", content_type);
        add("ratelimit-policy", policy(&name, rule));
        let mut state = format!("{name};r={}", decision.remaining);
        if let Some(wait) = wait {
            let _ = write!(state, ";t={wait}");
            add("retry-after", wait.to_string());
        }
        add("ratelimit", state);
        let own_headers = own.headers.into_iter();
        headers.extend(own_headers.map(|(name, value)| (name.into(), value)));
        Self {
            status: own.status,
            headers,
            body,
            reason: format!("{}:{}", token(&rule.name), decision.tier.name()),
        }
    }
}

/// The rule's quota. Windows that are no whole number of seconds have no `w`,
/// which the draft counts in seconds; nor has a calendar month, which is not
/// always as long. `t` says when that ends.
fn policy(name: &str, rule: &Rule) -> String {
    let mut policy = format!("{name};q={}", rule.quota.limit);
    let window = rule.quota.window.fixed().map_or(0, Micros::get);
    if window > 0 && window.is_multiple_of(SECOND) {
        let _ = write!(policy, ";w={}", window / SECOND);
    }
    policy
}

fn problem(rule: &str, status: u16) -> String {
    serde_json::json!({
        "type": PROBLEM,
        "title": "Quota exceeded",
        "status": status,
        "violated-policies": [rule],
    })
    .to_string()
}

/// A structured-field string (RFC 9651): printable ASCII, quotes and backslashes
/// escaped. Anything else in a rule's name shows as `?`.
fn quoted(name: &str) -> String {
    let mut out = String::from('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ => out.push('?'),
        }
    }
    out.push('"');
    out
}

/// A name fit for a log field: no spaces, nothing unprintable.
fn token(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_graphic() { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests;
