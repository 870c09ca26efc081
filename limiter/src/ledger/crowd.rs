//! Keys of which little more is left than sources may admit unasked, for those
//! that have not met them.

use alloc::{collections::VecDeque, vec::Vec};

use super::lend::HIT;
use crate::{cold, key::CounterKey, quota::Quota, time::Timestamp};

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

/// What is kept back of a key for those who may admit unasked: `impatient` of
/// `sources`; in millionths of a hit.
pub(super) fn reserve(quota: &Quota, sources: u32, impatient: u32) -> u64 {
    cold::reserve(quota.capacity(), sources, impatient).saturating_mul(HIT)
}

/// One source's own part of that.
pub(super) fn own_reserve(quota: &Quota, sources: u32, impatient: bool) -> u64 {
    if impatient {
        cold::credit(quota.capacity(), sources).saturating_mul(HIT)
    } else {
        0
    }
}

/// Whether so little is left that sources have to stop admitting unasked: `room`
/// by the books, `lent` of it, and `covered` of that in place of what its
/// holders would admit unasked of the `reserve`.
pub(super) fn is_crowded(quota: &Quota, room: i64, lent: u64, covered: u64, reserve: u64) -> bool {
    let margin = cold::margin(quota.capacity(), reserve / HIT).saturating_mul(HIT);
    let least = reserve.saturating_sub(covered).saturating_add(margin);
    i128::from(room) - i128::from(lent) <= i128::from(least)
}
