//! `POST /v1/ratelimit/check`: one request, decided here and exactly.

use core::{net::IpAddr, num::NonZeroU64};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{App, body, caller::Caller, enforced, members, problem::Problem};
use crate::{
    rules::Described,
    serve::task::{Check, Checked},
};

/// Either a rule and a key, or a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(alias = "scope")]
    rule: Option<String>,
    tier: Option<String>,
    #[serde(default)]
    key: Key,
    cost: Option<NonZeroU64>,
    request: Option<Request>,
}

/// A request in words. What is not said of it is empty.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    host: String,
    path: String,
    #[serde(default)]
    headers: HashMap<String, String>,
    ip: Option<IpAddr>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

fn get() -> String {
    "GET".to_owned()
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
    let mut check = Check::try_from(asked)?;
    if let (Check::Described(request), Some(part)) = (&check, members::part_of(&headers)) {
        check = Check::Part {
            request: request.clone(),
            group: part.group,
            look: part.look,
        };
    }
    let key = match &check {
        Check::Named { key, .. } if app.log_keys => Some(key.clone()),
        Check::Named { .. } | Check::Described(_) | Check::Part { .. } => None,
    };
    let checked = app.ledger.check(check, permit).await?;
    tracing::debug!(
        rule = checked.rule().map(|rule| &*rule.name),
        allowed = checked.allowed,
        key = ?key,
        tenant = &*caller.tenant,
        token = caller.token.as_deref(),
        "checked"
    );
    if options.enforce && !checked.allowed {
        return Ok(enforced::denied(&checked));
    }
    let mut response = Json(describe(&checked)).into_response();
    if options.enforce {
        enforced::allowed(response.headers_mut(), &checked);
    }
    Ok(response)
}

impl TryFrom<Asked> for Check {
    type Error = Problem;

    fn try_from(asked: Asked) -> Result<Self, Problem> {
        let key = match asked.key {
            Key::None => Vec::new(),
            Key::One(value) => vec![value],
            Key::Many(values) => values,
        };
        let cost = asked.cost.map(NonZeroU64::get);
        let tier = asked.tier;
        match (asked.rule, asked.request) {
            (Some(rule), None) => Ok(Self::Named {
                rule,
                tier,
                key,
                cost,
            }),
            (None, Some(request)) if key.is_empty() && cost.is_none() && tier.is_none() => {
                Ok(Self::Described(request.try_into()?))
            }
            (None, None) => Err(Problem::malformed(
                "the body is not a check: name a rule and its key, or describe a request",
            )
            .with("field", "rule")),
            (_, Some(_)) => Err(Problem::malformed(
                "the body is not a check: a request stands alone; its rules, tiers, keys and costs \
                 are those that apply to it",
            )
            .with("field", "request")),
        }
    }
}

impl TryFrom<Request> for Described {
    type Error = Problem;

    fn try_from(request: Request) -> Result<Self, Problem> {
        let headers = request.headers.into_iter();
        let attribute = |(name, value): (String, String)| match name.parse() {
            Ok(attribute) => Ok((attribute, value)),
            Err(error) => Err(Problem::malformed(format!(
                "the body is not a check: {name:?} is no attribute: {error}"
            ))
            .with("field", "request.attributes")),
        };
        let attributes = request.attributes.into_iter().map(attribute);
        Ok(Self {
            method: request.method,
            host: request.host,
            path: request.path,
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect(),
            address: request.ip,
            attributes: attributes.collect::<Result<_, _>>()?,
        })
    }
}

/// What was decided; without numbers if no rule applies.
fn describe(checked: &Checked) -> Value {
    let decision = &checked.decision;
    let applies = checked.rule().is_some_and(|rule| !rule.unlimited);
    let reset_at = checked.now.after(decision.reset_after).as_micros();
    let retry_after = decision.retry_after.filter(|_| !checked.allowed);
    json!({
        "allowed": checked.allowed,
        "rule": checked.rule_name(),
        "rule_tier": checked.rule().and_then(|rule| rule.tier.as_deref()),
        "limit": applies.then_some(decision.limit),
        "remaining": applies.then_some(decision.remaining),
        "reset_at": applies.then_some(reset_at.div_ceil(1_000_000)),
        "retry_after": retry_after.map(|wait| wait.as_secs_ceil()),
        "tier": decision.tier.name(),
        "shadowed": decision.shadowed,
    })
}
