//! `POST /v1/ratelimit/check`: one request, decided here and exactly.

use core::num::NonZeroU64;
use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{App, body, caller::Caller, problem::Problem, quota_headers};
use crate::serve::task::{Check, Checked};

/// The type of problem that a spent quota is, as registered.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(alias = "scope")]
    rule: String,
    #[serde(default)]
    key: Key,
    cost: Option<NonZeroU64>,
}

#[derive(Deserialize, Default)]
#[serde(
    untagged,
    expecting = "key: a string, or a list of strings, one for each part of the rule's key"
)]
enum Key {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    /// Whether a denial is to look like one to HTTP.
    #[serde(default)]
    enforce: bool,
}

pub(super) async fn check(
    State(app): State<Arc<App>>,
    caller: Caller,
    options: Result<Query<Options>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Query(options) = options.map_err(|error| Problem::malformed(error.body_text()))?;
    let (bytes, permit) = body::read(&app, &headers, body).await?;
    let asked: Asked = body::json("a check", &bytes)?;
    let check = Check::from(asked);
    let key = app.log_keys.then(|| check.key.clone());
    let checked = app.ledger.check(check, permit).await?;
    tracing::debug!(
        rule = checked.rule,
        allowed = checked.allowed,
        key = ?key,
        tenant = &*caller.tenant,
        token = caller.token.as_deref(),
        "checked"
    );
    let mut response = match options.enforce && !checked.allowed {
        true => exceeded(&checked).into_response(),
        false => Json(describe(&checked)).into_response(),
    };
    if options.enforce {
        quota_headers::add(response.headers_mut(), &checked);
    }
    Ok(response)
}

impl From<Asked> for Check {
    fn from(asked: Asked) -> Self {
        Self {
            rule: asked.rule,
            key: match asked.key {
                Key::None => Vec::new(),
                Key::One(value) => vec![value],
                Key::Many(values) => values,
            },
            cost: asked.cost.map(NonZeroU64::get),
        }
    }
}

fn describe(checked: &Checked) -> Value {
    let decision = &checked.decision;
    let reset_at = checked.now.after(decision.reset_after).as_micros();
    let retry_after = decision.retry_after.filter(|_| !checked.allowed);
    json!({
        "allowed": checked.allowed,
        "rule": checked.rule,
        "limit": decision.limit,
        "remaining": decision.remaining,
        "reset_at": reset_at.div_ceil(1_000_000),
        "retry_after": retry_after.map(|wait| wait.as_secs_ceil()),
        "tier": decision.tier.name(),
        "shadowed": decision.shadowed,
    })
}

fn exceeded(checked: &Checked) -> Problem {
    let rule = &checked.rule;
    let detail = match checked.decision.retry_after {
        Some(_) => format!("the quota of rule {rule:?} is spent"),
        None => format!("rule {rule:?} never allows so large a cost"),
    };
    let status = StatusCode::TOO_MANY_REQUESTS;
    let problem = Problem::new(
        status,
        "quota-exceeded",
        "Request cannot be satisfied as assigned quota has been exceeded",
        detail,
    )
    .registered(QUOTA_EXCEEDED)
    .with("violated-policies", json!([checked.rule]));
    match checked.decision.retry_after {
        Some(wait) => problem.retry_after(wait.as_secs_ceil()),
        None => problem,
    }
}
