//! The other members of a shared store: what is not here is sent on to who has it.
//!
//! A request goes on at most once: it is marked, and a member that gets one for what it
//! does not have says so (`weir-elsewhere`), in place of sending it further. A source's
//! message is cut up (`spread.rs`); every other request goes whole, to the member that
//! has what it asks for.
//!
//! A request that may have been taken is never sent twice: only one that was refused, or
//! whose member could not be connected to, is tried again.

mod client;
mod forward;
mod merge;
mod spread;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};

use self::client::Client;
use crate::{
    config::Limits,
    serve::{metrics::Metrics, task::Groups},
};

pub(super) use self::forward::{Elsewhere, forward};
pub(super) use self::spread::sync;

/// Marks what came from another member.
const FORWARDED: HeaderName = HeaderName::from_static("weir-forwarded");

/// Marks an answer that says no more than that something is not here: its value is the
/// group.
const ELSEWHERE: HeaderName = HeaderName::from_static("weir-elsewhere");

/// What it takes to reach them.
pub(in crate::serve) struct Members {
    groups: Arc<Groups>,
    client: Client,
    metrics: Arc<Metrics>,
}

impl Members {
    pub(in crate::serve) fn new(
        groups: &Arc<Groups>,
        limits: &Limits,
        metrics: &Arc<Metrics>,
    ) -> Self {
        Self {
            groups: Arc::clone(groups),
            client: Client::new(limits.request_timeout),
            metrics: Arc::clone(metrics),
        }
    }
}

/// Whether a request may not be sent on any more.
fn was_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
}
