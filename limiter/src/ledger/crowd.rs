//! Keys of which half the limit is spent, for the sources that have not met them.

use alloc::{collections::VecDeque, vec::Vec};

use crate::{key::CounterKey, time::Timestamp};

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
