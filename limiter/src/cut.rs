//! A message cut into parts, by whose partitions it speaks of.
//!
//! A region may be several books: each has some of the partitions. A part says of its
//! partitions what the whole said, under the same number.

use alloc::{vec, vec::Vec};

use crate::{
    key::CounterKey,
    wire::{ClaimGroup, SyncRequest},
};

/// Deals the batches and claims of `request` out to `parts`, each to the one at the
/// place that `of` says its partition has; those beyond the last are dropped. Everything
/// else of the message is the parts' own.
pub fn deal(request: SyncRequest, of: impl Fn(u32) -> usize, parts: &mut [SyncRequest]) {
    for batch in request.batches {
        if let Some(part) = parts.get_mut(of(batch.partition)) {
            part.batches.push(batch);
        }
    }
    for group in &request.claims {
        deal_claims(group, &of, parts);
    }
}

/// A message without batches and claims.
pub fn head(request: &SyncRequest) -> SyncRequest {
    SyncRequest {
        batches: Vec::new(),
        claims: Vec::new(),
        pop: request.pop.clone(),
        lists: request.lists.clone(),
        ..*request
    }
}

fn deal_claims(group: &ClaimGroup, of: &impl Fn(u32) -> usize, parts: &mut [SyncRequest]) {
    let mut dealt: Vec<(Vec<u8>, ClaimGroup)> = vec![Default::default(); parts.len()];
    for (place, bytes) in group.keys.as_chunks::<16>().0.iter().enumerate() {
        let part = of(CounterKey::from_bytes(*bytes).partition());
        if let Some((keys, claims)) = dealt.get_mut(part) {
            keys.extend_from_slice(bytes);
            copy(group, place, claims);
        }
    }
    for (part, (keys, mut claims)) in parts.iter_mut().zip(dealt) {
        if !keys.is_empty() {
            claims.rule = group.rule;
            claims.keys = keys.into();
            part.claims.push(claims);
        }
    }
}

/// Copies one key's claim, a value from each column that is there. Every column is
/// named, so that none that is new is forgotten.
fn copy(from: &ClaimGroup, place: usize, to: &mut ClaimGroup) {
    let ClaimGroup {
        rule: _,
        keys: _,
        held_micro,
        unreported,
        offered,
        wanted,
        waiting,
        exceeded,
    } = from;
    let columns = [
        (held_micro, &mut to.held_micro),
        (unreported, &mut to.unreported),
        (offered, &mut to.offered),
        (wanted, &mut to.wanted),
        (waiting, &mut to.waiting),
        (exceeded, &mut to.exceeded),
    ];
    for (from, to) in columns {
        to.extend(from.get(place));
    }
}
