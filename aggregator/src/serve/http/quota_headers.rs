//! `RateLimit-Policy` and `RateLimit`: what a client is told of its quota
//! (draft-ietf-httpapi-ratelimit-headers).

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use limiter::time::Micros;

use crate::serve::task::Checked;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// Adds both, if a rule applies and there is a limit.
pub(super) fn add(headers: &mut HeaderMap, checked: &Checked) {
    let Some(rule) = checked.rule.as_ref().filter(|_| !checked.unlimited) else {
        return;
    };
    let name = quoted(rule);
    let decision = &checked.decision;
    let mut policy = format!("{name};q={}", decision.limit);
    let seconds = checked.window.map_or(0, Micros::get);
    if seconds > 0 && seconds.is_multiple_of(1_000_000) {
        policy += &format!(";w={}", seconds / 1_000_000);
    }
    let reset = decision.reset_after.as_secs_ceil();
    let state = format!("{name};r={};t={reset}", decision.remaining);
    for (header, value) in [(POLICY, policy), (STATE, state)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(header, value);
        }
    }
}

/// A string as structured fields have it (RFC 9651): printable ASCII, with
/// quotes and backslashes escaped. What is not printable becomes `?`.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            ' '..='~' => quoted.push(char),
            _ => quoted.push('?'),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_quotes() {
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(quoted("a\r\né"), r#""a???""#);
    }
}
