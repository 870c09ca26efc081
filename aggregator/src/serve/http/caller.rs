//! Who asks, as handlers have it.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};

use super::problem::Problem;

/// Who asks. The guard puts it into every request that it lets through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// On whose behalf; whose counters are meant.
    pub(super) tenant: Arc<str>,
    /// What their token is called; none if none was asked for.
    pub(super) token: Option<Arc<str>>,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    /// Fails where no guard stood: nobody is taken for somebody else.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            let detail = "the request came past the guard";
            Problem::new(status, "unguarded", "Nobody knows who asks", detail)
        })
    }
}
