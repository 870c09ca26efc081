//! A source's message, each part to the member whose partitions it speaks of.
//!
//! A part whose owner cannot be reached stays without an answer, and its source sends it
//! again. Only if nothing at all could be answered is it waited for, so that a source is
//! not told that the region is away while partitions change hands.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Bytes, to_bytes},
    http::{HeaderMap, Method},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use limiter::{
    cut,
    time::Micros,
    wire::{SyncReply, SyncRequest},
};
use prost::Message;

use super::{
    super::{App, problem::Problem},
    Members,
    client::{Asked, NoAnswer},
    merge::{self, merge},
    was_forwarded,
};
use crate::{
    serve::task::{Permit, Refusal, Whereabouts},
    shared::{GROUPS, group_of},
};

/// How long a message waits of which no part has an owner.
const PATIENCE: Micros = Micros::from_millis(400);

/// The longest answer of another member.
const REPLY_BYTES_MAX: usize = 16 << 20;

/// How far back what is crowded is told: the parts are answered by several clocks, and
/// not each of them in each answer.
const CROWDED_BACK_US: u64 = 2_000_000;

/// Answers a source's message, as far as there is anyone to answer it.
pub(in crate::serve::http) async fn sync(
    app: &Arc<App>,
    members: &Members,
    headers: &HeaderMap,
    message: SyncRequest,
    _permit: Permit,
) -> Result<SyncReply, Problem> {
    let asked = merge::Asked::of(&message);
    let forwarded = was_forwarded(headers);
    let whole = message.clone();
    let mut parts = parts(members, message);
    let give_up = members.groups.now().after(PATIENCE);
    loop {
        let mut changes = members.groups.subscribe();
        let spread = Spread {
            app,
            members,
            headers,
            whole: &whole,
        };
        let told = spread.ask(&mut parts, forwarded).await;
        match (merge(&asked, told.replies), told.refusal) {
            (Some(reply), _) => return Ok(reply),
            (None, Some(refusal)) => return Err(refusal.into()),
            (None, None) if forwarded || members.groups.now() >= give_up => {
                return Err(Refusal::Elsewhere { group: 0 }.into());
            }
            (None, None) => {
                members
                    .groups
                    .changed(&mut changes, Duration::from_millis(25))
                    .await
            }
        }
    }
}

/// A part for each group that is concerned; of a message that says nothing, one.
fn parts(members: &Members, message: SyncRequest) -> Vec<(u32, SyncRequest)> {
    let source = message.source;
    let mut head = cut::head(&message);
    head.heard_us = head.heard_us.saturating_sub(CROWDED_BACK_US);
    let mut parts = vec![head.clone(); GROUPS as usize];
    cut::deal(
        message,
        |partition| group_of(partition) as usize,
        &mut parts,
    );
    let mut parts: Vec<(u32, SyncRequest)> = (0..).zip(parts).collect();
    parts.retain(|(_, part)| !part.batches.is_empty() || !part.claims.is_empty());
    if parts.is_empty() {
        let idle = u32::try_from(source % u64::from(GROUPS)).unwrap_or(0);
        parts.push((members.groups.any_here().unwrap_or(idle), head));
    }
    parts
}

struct Spread<'a> {
    app: &'a Arc<App>,
    members: &'a Members,
    headers: &'a HeaderMap,
    whole: &'a SyncRequest,
}

/// What came back, of all parts.
#[derive(Default)]
struct Told {
    replies: Vec<SyncReply>,
    /// Why a part means nothing, or could not be taken.
    refusal: Option<Refusal>,
}

impl Spread<'_> {
    async fn ask(&self, parts: &mut [(u32, SyncRequest)], forwarded: bool) -> Told {
        let mut here = FuturesUnordered::new();
        let mut away: Vec<(String, Vec<u32>)> = Vec::new();
        for (group, part) in parts.iter() {
            match self.members.groups.whereabouts(*group) {
                Whereabouts::Here => {
                    let ledger = &self.app.ledger;
                    here.push(ledger.sync_group(*group, part.clone(), Permit::of_a_part()));
                }
                Whereabouts::At(owner) if !forwarded => {
                    match away.iter_mut().find(|(url, _)| *url == owner.url) {
                        Some((_, groups)) => groups.push(*group),
                        None => away.push((owner.url, vec![*group])),
                    }
                }
                _ => {}
            }
        }
        let mut there: FuturesUnordered<_> = away
            .into_iter()
            .map(|(url, groups)| self.send(url, groups))
            .collect();
        let mut told = Told::default();
        while let Some(answer) = here.next().await {
            match answer {
                Ok(reply) => told.replies.push(reply),
                Err(Refusal::Elsewhere { .. } | Refusal::Moved) => {}
                Err(refusal) => told.refusal = Some(refusal),
            }
        }
        while let Some(answer) = there.next().await {
            told.replies.extend(answer);
        }
        told
    }

    /// Sends another member what is its own.
    async fn send(&self, url: String, groups: Vec<u32>) -> Option<SyncReply> {
        let mut part = [cut::head(self.whole)];
        let of = |partition| usize::from(!groups.contains(&group_of(partition)));
        cut::deal(self.whole.clone(), of, &mut part);
        let [part] = part;
        let asked = Asked {
            method: &Method::POST,
            path: "/v1/sync",
            headers: self.headers,
            body: Bytes::from(part.encode_to_vec()),
        };
        let metrics = &self.members.metrics.cluster;
        let response = match self.members.client.ask(&url, &asked).await {
            Ok(response) if response.status().is_success() => response,
            Ok(response) => {
                metrics.count_forward("refused");
                tracing::debug!(url, status = %response.status(), "a member refused a part");
                return None;
            }
            Err(NoAnswer::Unheard(why)) => {
                metrics.count_forward("unheard");
                tracing::debug!(url, why, "a member was not reached");
                return None;
            }
            Err(NoAnswer::Unknown(why)) => {
                metrics.count_forward("unknown");
                tracing::debug!(url, why, "a member did not answer");
                return None;
            }
        };
        metrics.count_forward("answered");
        let body = to_bytes(response.into_body(), REPLY_BYTES_MAX).await.ok()?;
        SyncReply::decode(body).ok()
    }
}
