//! Keys of which little more is left than sources may admit unasked, for those
//! that have not met them.

use alloc::{collections::VecDeque, vec::Vec};

use super::{lend::HIT, loan::Claim};
use crate::{
    cold::{self, Fleet},
    key::CounterKey,
    quota::Quota,
    time::Timestamp,
};

/// The most keys remembered.
const KEYS_MAX: usize = 65_536;

/// The most keys told in one reply.
const TOLD_MAX: usize = 4_096;

/// What became crowded, in order.
#[derive(Default)]
pub(super) struct Crowd {
    recent: VecDeque<(Timestamp, CounterKey)>,
    /// When the latest of those no longer remembered became crowded.
    forgotten: Option<Timestamp>,
}

impl Crowd {
    pub(super) fn add(&mut self, key: CounterKey, now: Timestamp) {
        if self.recent.len() >= KEYS_MAX
            && let Some((at, _)) = self.recent.pop_front()
        {
            self.forgotten = Some(at);
        }
        self.recent.push_back((now, key));
    }

    /// What became crowded at `heard` or later, sixteen bytes a key, and whether
    /// that is not all.
    pub(super) fn since(&self, heard: Timestamp) -> (Vec<u8>, bool) {
        let fresh = self.recent.iter().rev().take_while(|(at, _)| *at >= heard);
        let mut keys: Vec<u8> = fresh
            .take(TOLD_MAX + 1)
            .flat_map(|(_, key)| key.to_bytes())
            .collect();
        let more = keys.len() > TOLD_MAX * 16 || self.forgotten.is_some_and(|at| at >= heard);
        keys.truncate(TOLD_MAX * 16);
        (keys, more)
    }

    /// Forgets what every source has been told or has no use for.
    pub(super) fn forget_before(&mut self, then: Timestamp) {
        while let Some((at, _)) = self.recent.front().copied()
            && at < then
        {
            self.recent.pop_front();
        }
    }
}

/// What is kept back of a key for those who may admit unasked; in millionths of a hit.
pub(super) fn reserve(quota: &Quota, fleet: Fleet) -> u64 {
    cold::reserve(quota.capacity(), fleet).saturating_mul(HIT)
}

/// The part of that of the source that makes a claim.
pub(super) fn own_reserve(quota: &Quota, fleet: Fleet, claim: &Claim) -> u64 {
    let hits = if claim.region {
        cold::of_region(quota.capacity(), fleet.sources)
    } else if claim.impatient {
        cold::credit(quota.capacity(), fleet.sources)
    } else {
        0
    };
    hits.saturating_mul(HIT)
}

/// What has to be left beyond the reserve. Where only part of a limit is in hand, the
/// aggregator above says which keys are crowded.
pub(super) fn margin(quota: &Quota, reserve: u64, upward: bool) -> u64 {
    if upward {
        0
    } else {
        cold::margin(quota.capacity(), reserve / HIT).saturating_mul(HIT)
    }
}

/// Whether so little is left that sources have to stop admitting unasked: `room`
/// by the books, `lent` of it, and `covered` of that in place of what its
/// holders would admit unasked of the `reserve`; with a `margin` to spare.
pub(super) fn is_crowded(margin: u64, room: i64, lent: u64, covered: u64, reserve: u64) -> bool {
    let least = reserve.saturating_sub(covered).saturating_add(margin);
    i128::from(room) - i128::from(lent) <= i128::from(least)
}
