//! Which counter a path means.

use axum::{
    extract::{FromRequestParts, Query, RawPathParams, rejection::QueryRejection},
    http::request::Parts,
};
use limiter::counter::CounterId;
use serde::Deserialize;

use crate::serve::http::{caller::Caller, problem::Problem};

/// A namespace; `default` unless one is named.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Namespace(pub(super) String);

impl Namespace {
    /// What is meant if none is named.
    pub(super) const DEFAULT: &str = "default";
}

impl Default for Namespace {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    namespace: Namespace,
}

/// The counter that is named in the path, with `?namespace=` after it.
pub(super) struct Target(pub(super) CounterId);

impl<S: Send + Sync> FromRequestParts<S> for Target {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let named = RawPathParams::from_request_parts(parts, state).await;
        let named = named.map_err(|error| Problem::malformed(error.body_text()))?;
        let name = match named.iter().next() {
            Some((_, name)) => name.to_owned(),
            // A path that is spelled out, as `reset`, names the counter itself.
            None => last_segment(parts.uri.path()),
        };
        let options: Result<Query<Options>, QueryRejection> =
            Query::from_request_parts(parts, state).await;
        let Query(options) = options.map_err(|error| Problem::malformed(error.body_text()))?;
        let id = CounterId::new(&caller.tenant, &options.namespace.0, &name)?;
        Ok(Self(id))
    }
}

fn last_segment(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
