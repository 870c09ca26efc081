//! The other members of a shared store: what is not here is sent on to who has it.
//!
//! A request goes on at most once: it is marked, and a member that gets one for what it
//! does not have says so (`weir-elsewhere`), in place of sending it further. A source's
//! message is cut up (`spread.rs`); every other request goes whole, to the member that
//! has what it asks for.
//!
//! A request that may have been taken is never sent twice: only one that was refused, or
//! whose member could not be connected to, is tried again.

mod apart;
mod client;
mod forward;
mod merge;
mod reach;
mod spread;

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderMap, HeaderName};

pub(super) use self::{
    apart::Part,
    client::Asked,
    forward::{Belongs, forward},
    reach::{Here, Reached},
    spread::sync,
};

use self::client::Client;
use crate::{
    config::Limits,
    serve::{
        metrics::Metrics,
        task::{Groups, Whereabouts},
    },
};

/// How long nothing need be looked at that has not changed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How long answers may take that were ready when partitions were handed over.
const ANSWERED: Duration = Duration::from_millis(500);

/// Marks what came from another member.
const FORWARDED: HeaderName = HeaderName::from_static("weir-forwarded");

/// Marks an answer that says no more than that something is not here: its value is the
/// group.
const ELSEWHERE: HeaderName = HeaderName::from_static("weir-elsewhere");

/// Says that only a part of a check is asked for.
const PART: HeaderName = HeaderName::from_static("weir-part");

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

impl Members {
    /// Waits until a group is no longer owned by the member at `url`, and a little longer:
    /// one that handed it over has answered by then.
    async fn has_left(&self, group: u32, url: &str) {
        let mut changes = self.groups.subscribe();
        while matches!(self.groups.whereabouts(group), Whereabouts::At(owner) if owner.url == url) {
            self.groups.changed(&mut changes, LOOK_AGAIN).await;
        }
        tokio::time::sleep(ANSWERED).await;
    }
}

/// The part of a check that is asked for; none: all of it.
pub(super) fn part_of(headers: &HeaderMap) -> Option<Part> {
    Part::parse(headers.get(PART)?)
}

/// Whether a request may not be sent on any more.
fn was_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
}
