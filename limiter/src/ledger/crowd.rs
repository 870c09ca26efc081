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

/// Millionths of hits that all sources may admit unasked.
pub(super) fn reserve(quota: &Quota, sources: u32) -> u64 {
    cold::reserve(quota.capacity(), sources).saturating_mul(HIT)
}

/// The same without the one that is being answered: it hears of what became of
/// the key at once.
pub(super) fn reserve_of_others(quota: &Quota, sources: u32) -> u64 {
    let own = cold::credit(quota.capacity(), sources).saturating_mul(HIT);
    reserve(quota, sources).saturating_sub(own)
}

/// Whether so little is left that sources have to stop admitting unasked: `room`
/// by the books, `lent` of it, and `covered` of that in place of what its
/// holders would admit unasked.
pub(super) fn is_crowded(quota: &Quota, room: i64, lent: u64, covered: u64, sources: u32) -> bool {
    let margin = cold::margin(quota.capacity(), sources).saturating_mul(HIT);
    let least = reserve(quota, sources)
        .saturating_sub(covered)
        .saturating_add(margin);
    i128::from(room) - i128::from(lent) <= i128::from(least)
}
