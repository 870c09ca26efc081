//! What a client is told that has to wait.
//!
//! Status 429 (RFC 6585) with `Retry-After` (RFC 9110), `RateLimit-Policy` and
//! `RateLimit` (draft-ietf-httpapi-ratelimit-headers) and a problem document
//! (RFC 9457) that names the rule; or the rule's own status, body and headers.

use std::borrow::Cow;

use limiter::answer;
use limiter::decision::Decision;
use limiter::rule::Rule;

/// A header: its name in lower case, and its value.
pub type Header = (Cow<'static, str>, String);

/// gRPC's word for a quota that is spent: `RESOURCE_EXHAUSTED`.
pub const GRPC_RESOURCE_EXHAUSTED: u32 = 8;

/// An answer that turns a request away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status code.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<Header>,
    /// The body.
    pub body: String,
    /// The same in a sentence, for a gRPC client.
    pub message: String,
    /// For the access log: the rule, and who decided.
    pub reason: String,
}

/// What a gRPC client is answered: the status of a call, in place of HTTP's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcRefusal {
    /// Headers, names in lower case: all but the type of a body that there is not.
    pub headers: Vec<Header>,
    /// `grpc-status`.
    pub status: u32,
    /// `grpc-message`, not encoded yet.
    pub message: String,
}

impl Refusal {
    /// The answer when `rule` denied with this decision.
    #[must_use]
    pub fn new(rule: &Rule, decision: &Decision) -> Self {
        let own = rule.response.clone().unwrap_or_default();
        let (content_type, body) = match own.body {
            Some(body) => (body.content_type, body.text),
            None => (
                answer::PROBLEM_MEDIA_TYPE.to_owned(),
                answer::problem(rule, decision, own.status),
            ),
        };
        let mut headers: Vec<Header> = vec![("content-type".into(), content_type)];
        answer::denied(rule, decision, &mut |name, value| {
            headers.push((name.into(), value));
        });
        let own_headers = own.headers.into_iter();
        headers.extend(own_headers.map(|(name, value)| (name.into(), value)));
        Self {
            status: own.status,
            headers,
            body,
            message: answer::detail(rule, decision),
            reason: format!("{}:{}", token(&rule.name), decision.tier.name()),
        }
    }

    /// The same for a gRPC client. Its body is its client's business, and the rule's
    /// own status is HTTP's: neither means anything to a call.
    #[must_use]
    pub fn grpc(&self) -> GrpcRefusal {
        let headers = self.headers.iter();
        let headers = headers.filter(|(name, _)| name != "content-type");
        GrpcRefusal {
            headers: headers.cloned().collect(),
            status: GRPC_RESOURCE_EXHAUSTED,
            message: self.message.clone(),
        }
    }
}

/// Whether a request of this `content-type` is a gRPC call.
#[must_use]
pub fn is_grpc(content_type: &[u8]) -> bool {
    match content_type.strip_prefix(b"application/grpc") {
        Some(rest) => matches!(rest.first(), None | Some(b'+' | b';')),
        None => false,
    }
}

/// A name fit for a log field: no spaces, nothing unprintable.
fn token(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_graphic() { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests;
