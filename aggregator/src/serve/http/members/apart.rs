//! A described request under rules whose counts several groups have.
//!
//! Each is looked at first, which spends nothing. If all would allow it, each spends its
//! part; if not, those that deny it say so, and count it where their rules want that. So
//! a request that is denied has spent nothing elsewhere, but for two that are decided in
//! the same moment; and no limit is exceeded, since each spends only what fits.

use axum::{
    body::{Body, to_bytes},
    http::{HeaderValue, StatusCode},
    response::Response,
};
use serde::Deserialize;

use super::forward::Sent;

/// The longest answer to a check.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What a part of a check is for, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve::http) struct Part {
    pub(in crate::serve::http) group: u32,
    /// Whether nothing is to be spent.
    pub(in crate::serve::http) look: bool,
}

/// What a group said.
struct Told {
    /// None: it could not be asked, or has refused.
    allowed: Option<bool>,
    remaining: u64,
    retry_after: u64,
    response: Response,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Numbers {
    allowed: bool,
    remaining: Option<u64>,
    retry_after: Option<u64>,
}

impl Part {
    fn header(self) -> Option<HeaderValue> {
        let what = if self.look { "look" } else { "spend" };
        HeaderValue::try_from(format!("{what};{}", self.group)).ok()
    }

    /// What a header says; none if it means nothing.
    pub(super) fn parse(header: &HeaderValue) -> Option<Self> {
        let (what, group) = header.to_str().ok()?.split_once(';')?;
        let look = match what {
            "look" => true,
            "spend" => false,
            _ => return None,
        };
        let group = group.parse().ok()?;
        Some(Self { group, look })
    }
}

impl Sent<'_> {
    /// Decides a request in several groups.
    pub(super) async fn decide_apart(&self, groups: &[u32]) -> Response {
        let mut denying = Vec::new();
        for group in groups {
            let told = self.part(*group, true).await;
            match told.allowed {
                None => return told.response,
                Some(false) => denying.push(*group),
                Some(true) => {}
            }
        }
        let spending = if denying.is_empty() { groups } else { &denying };
        let mut decisive: Option<Told> = None;
        for group in spending {
            let told = self.part(*group, false).await;
            if told.allowed.is_none() {
                return told.response;
            }
            if decisive.as_ref().is_none_or(|known| told.outweighs(known)) {
                decisive = Some(told);
            }
        }
        decisive.map_or_else(Response::default, |told| told.response)
    }

    async fn part(&self, group: u32, look: bool) -> Told {
        let part = Part { group, look }.header();
        let response = self.reach(group, part.as_ref()).await;
        let (head, body) = response.into_parts();
        let body = to_bytes(body, ANSWER_BYTES_MAX).await.unwrap_or_default();
        let numbers: Numbers = serde_json::from_slice(&body).unwrap_or_default();
        let allowed = match head.status {
            StatusCode::OK => Some(numbers.allowed),
            StatusCode::TOO_MANY_REQUESTS => Some(false),
            _ => None,
        };
        Told {
            allowed,
            remaining: numbers.remaining.unwrap_or(u64::MAX),
            retry_after: numbers.retry_after.unwrap_or(u64::MAX),
            response: Response::from_parts(head, Body::from(body)),
        }
    }
}

impl Told {
    /// Whether this is the one to be told of the two: a denial, the longer one; else
    /// whichever leaves less.
    fn outweighs(&self, other: &Self) -> bool {
        match (self.allowed == Some(true), other.allowed == Some(true)) {
            (false, true) => true,
            (true, false) => false,
            (false, false) => self.retry_after > other.retry_after,
            (true, true) => self.remaining < other.remaining,
        }
    }
}
