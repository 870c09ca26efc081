//! A check whose answer is to look to HTTP as an edge's would: a rule's own, or 429 and
//! a problem document, with the headers that the rule has.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use limiter::{answer, rule::response};
use serde_json::json;

use super::problem::Problem;
use crate::serve::task::Checked;

/// The answer to a denied check.
pub(super) fn denied(checked: &Checked) -> Response {
    let Some(rule) = checked.rule() else {
        return problem(StatusCode::TOO_MANY_REQUESTS, "", String::new()).into_response();
    };
    let own = rule.response.clone().unwrap_or_default();
    let status = StatusCode::from_u16(own.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let mut response = match own.body {
        Some(body) => typed(status, body),
        None => {
            let detail = answer::detail(rule, &checked.decision);
            problem(status, &rule.name, detail).into_response()
        }
    };
    let headers = response.headers_mut();
    answer::denied(rule, &checked.decision, &mut |name, value| {
        insert(headers, name, &value);
    });
    for (name, value) in &own.headers {
        insert(headers, name, value);
    }
    response
}

/// Adds what a client that was allowed is told, whatever the rule says of when: who
/// asks here asks for it.
pub(super) fn allowed(headers: &mut HeaderMap, checked: &Checked) {
    if let Some(rule) = checked.rule().filter(|rule| !rule.unlimited) {
        answer::told(rule, &checked.decision, &mut |name, value| {
            insert(headers, name, &value);
        });
    }
}

fn typed(status: StatusCode, body: response::Body) -> Response {
    let mut response = (status, body.text).into_response();
    insert(
        response.headers_mut(),
        header::CONTENT_TYPE.as_str(),
        &body.content_type,
    );
    response
}

fn problem(status: StatusCode, rule: &str, detail: String) -> Problem {
    Problem::new(status, "quota-exceeded", answer::PROBLEM_TITLE, detail)
        .registered(answer::PROBLEM_TYPE)
        .with("violated-policies", json!([rule]))
}

/// Rules are checked: none has a header that is none.
fn insert(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}
