//! Who asks, as far as handlers have to know.

use std::{convert::Infallible, sync::Arc};

use axum::{extract::FromRequestParts, http::request::Parts};

/// The tenant of everyone, as long as nobody says who they are.
const DEFAULT_TENANT: &str = "default";

/// Who asks. Whatever checks that puts it into the request's extensions.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Whose counters are meant.
    pub(super) tenant: Arc<str>,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<Self>().cloned();
        Ok(known.unwrap_or_else(|| Self {
            tenant: DEFAULT_TENANT.into(),
        }))
    }
}
