//! To where a group is: here, at another member, or wherever it comes to be.

use std::time::Duration;

use axum::response::Response;
use limiter::time::Micros;
use tokio::time::sleep;

use super::{
    ELSEWHERE, Members,
    client::{Asked, NoAnswer},
};
use crate::serve::task::Whereabouts;

/// How long a request waits for partitions that are between two owners: as long as it
/// takes until others notice that one is gone.
const PATIENCE: Micros = Micros::from_millis(6_000);

/// How soon it is looked again if nothing is said to have changed.
const AGAIN: Duration = Duration::from_millis(20);

/// What came of asking whoever has a group.
pub(in crate::serve::http) enum Reached<T> {
    /// This member has it, and answered.
    Here(T),
    /// Another answered.
    There(Response),
    /// Another may have taken it, and has not answered.
    Unknown(String),
    /// Nobody has it.
    Nowhere,
}

/// What this member does if it has the group.
pub(in crate::serve::http) trait Here: Sync {
    type Answer: Send;

    /// None: it has it no more.
    fn answer(&self) -> impl Future<Output = Option<Self::Answer>> + Send;
}

impl Members {
    /// Asks whoever has a group; `here`, if it is this member.
    pub(in crate::serve::http) async fn reach<H: Here>(
        &self,
        group: u32,
        asked: &Asked<'_>,
        here: &H,
    ) -> Reached<H::Answer> {
        let give_up = self.groups.now().after(PATIENCE);
        loop {
            let mut changes = self.groups.subscribe();
            match self.groups.whereabouts(group) {
                Whereabouts::Here => match here.answer().await {
                    Some(answer) => return Reached::Here(answer),
                    None => sleep(AGAIN).await,
                },
                Whereabouts::At(owner) => match self.ask(group, &owner.url, asked).await {
                    Some(Ok(response)) => return Reached::There(response),
                    Some(Err(why)) => return Reached::Unknown(why),
                    None => sleep(AGAIN).await,
                },
                Whereabouts::Nowhere => self.groups.changed(&mut changes, AGAIN * 5).await,
            }
            if self.groups.now() >= give_up {
                self.metrics.cluster.count_forward("no_owner");
                return Reached::Nowhere;
            }
        }
    }

    /// The owner's answer, or why it is not known what became of it; none if it has
    /// taken nothing and may be asked again.
    async fn ask(
        &self,
        group: u32,
        url: &str,
        asked: &Asked<'_>,
    ) -> Option<Result<Response, String>> {
        let metrics = &self.metrics.cluster;
        let answer = tokio::select! {
            answer = self.client.ask(url, asked) => answer,
            () = self.has_left(group, url) => {
                Err(NoAnswer::Unknown("it has lost the partitions meanwhile".to_owned()))
            }
        };
        match answer {
            Ok(response) if response.headers().contains_key(ELSEWHERE) => {
                metrics.count_forward("elsewhere");
                None
            }
            Ok(response) => {
                metrics.count_forward("answered");
                Some(Ok(response))
            }
            Err(NoAnswer::Unheard(why)) => {
                metrics.count_forward("unheard");
                tracing::debug!(url, why, "a member was not reached");
                None
            }
            Err(NoAnswer::Unknown(why)) => {
                metrics.count_forward("unknown");
                tracing::debug!(url, why, "a member did not answer");
                // Whoever only looks may look twice.
                (!asked.method.is_safe()).then_some(Err(why))
            }
        }
    }
}
