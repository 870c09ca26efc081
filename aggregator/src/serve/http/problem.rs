//! Everything that HTTP answers when it does not do as asked: problem+json, as
//! RFC 9457 has it. No other file builds an error.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value};

use super::{members::Elsewhere, openapi};
use crate::serve::task::Refusal;

/// Where our own types of problem are named.
const OURS: &str = "urn:weir:problem:";

/// Seconds after which someone refused for lack of room may try again.
const COME_AGAIN_S: u64 = 1;

/// Why a request was not done as asked.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    kind: String,
    title: &'static str,
    detail: String,
    retry_after_s: Option<u64>,
    members: Map<String, Value>,
    /// The group of partitions that is not here, if that is why.
    elsewhere: Option<u32>,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        kind: &str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            status,
            kind: format!("{OURS}{kind}"),
            title,
            detail: detail.into(),
            retry_after_s: None,
            members: Map::new(),
            elsewhere: None,
        }
    }

    /// The same with one more member.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The same with a type that is registered, and not ours.
    pub(super) fn registered(mut self, kind: &str) -> Self {
        kind.clone_into(&mut self.kind);
        self
    }

    /// The same, saying when to come again.
    pub(super) const fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The same, of what another member may have.
    const fn elsewhere(mut self, group: u32) -> Self {
        self.elsewhere = Some(group);
        self
    }

    /// As it is told: in a body of its own, or as one result of many.
    pub(super) fn into_body(self) -> Value {
        let mut body = Map::new();
        body.insert("type".to_owned(), self.kind.into());
        body.insert("title".to_owned(), self.title.into());
        body.insert("status".to_owned(), self.status.as_u16().into());
        body.insert("detail".to_owned(), self.detail.into());
        body.extend(self.members);
        body.into()
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        let title = "The request could not be read";
        Self::new(StatusCode::BAD_REQUEST, "malformed", title, detail)
    }

    pub(super) fn too_large(limit: u32) -> Self {
        let detail = format!("the body is larger than the limit of {limit} bytes (body_bytes_max)");
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Self::new(status, "too-large", "The body is too large", detail)
            .with("body_bytes_max", limit)
    }

    pub(super) fn slow_body() -> Self {
        let detail = "the body did not come in time (request_timeout_ms)";
        let status = StatusCode::REQUEST_TIMEOUT;
        Self::new(status, "slow-body", "The body came too slowly", detail)
    }

    pub(super) fn unready(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "unready", "The region is not ready", detail).retry_after(COME_AGAIN_S)
    }

    /// What should not happen: a request that was taken and has no answer.
    pub(super) fn unanswered() -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let detail = "the request was taken, but nothing was answered";
        Self::new(status, "unanswered", "There is no answer", detail)
    }

    pub(super) fn no_such_path(path: &str) -> Self {
        let detail = format!("there is nothing at {path}");
        Self::new(StatusCode::NOT_FOUND, "no-such-path", "Not found", detail)
            .with("paths", openapi::paths())
    }

    pub(super) fn no_such_method(method: &str, path: &str) -> Self {
        let detail = format!("{path} does not take {method}; the Allow header says what it does");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self::new(status, "no-such-method", "Method not allowed", detail)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::QueueFull => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Self::new(status, "queue-full", "The region is busy", detail)
                    .retry_after(COME_AGAIN_S)
            }
            Refusal::TooManyWatchers => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Self::new(status, "too-many-watchers", "The region is busy", detail)
                    .retry_after(COME_AGAIN_S)
            }
            Refusal::Counter(error) => error.into(),
            Refusal::Late(_) => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Self::new(status, "late", "The region did not answer in time", detail)
                    .retry_after(COME_AGAIN_S)
            }
            Refusal::Unready(_) | Refusal::Kept(_) | Refusal::Moved => Self::unready(detail),
            Refusal::Elsewhere { group } => Self::unready(detail).elsewhere(group),
            Refusal::Apart(_) => {
                let title = "This is kept in different places";
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "apart", title, detail)
            }
            Refusal::Sync(error) => Self::from_sync(&error, detail),
            Refusal::RulesMoved { revision } => Self::rules_moved(revision, detail),
            Refusal::UnknownRule { known, .. } => {
                let status = StatusCode::NOT_FOUND;
                Self::new(status, "unknown-rule", "There is no such rule", detail)
                    .with("rules", known)
            }
            Refusal::UnknownTier { known, .. } => {
                let title = "The rule does not set this tier apart";
                Self::new(StatusCode::NOT_FOUND, "unknown-tier", title, detail)
                    .with("field", "tier")
                    .with("tiers", known)
            }
            Refusal::KeyParts { .. } | Refusal::KeyValue { .. } => {
                let title = "The key is not this rule's";
                Self::new(StatusCode::BAD_REQUEST, "wrong-key", title, detail).with("field", "key")
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after_s) = (self.status, self.retry_after_s);
        let elsewhere = self.elsewhere.map(Elsewhere);
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, self.into_body().to_string()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if let Some(elsewhere) = elsewhere {
            response.extensions_mut().insert(elsewhere);
        }
        if let Some(seconds) = retry_after_s {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
