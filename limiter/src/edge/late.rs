//! Hits of windows that have passed, and hits given back that were counted in them,
//! waiting for a batch to go into.
//!
//! As long as batches leave there are hardly any. While the region is away there
//! is one more for every key and window, so that they are merged when there are
//! too many: the latest two windows of a key stand for themselves, since they
//! can still matter, and what is older than those goes into one sum, which only
//! the books need.

use alloc::vec::Vec;

use super::outbox::Delta;
use crate::key::CounterKey;

/// Windows of a key that are never merged.
const APART: usize = 2;

pub(super) struct Late {
    deltas: Vec<Delta>,
    /// More than this many are merged.
    many: usize,
}

impl Late {
    pub(super) const fn new(keys_max: usize) -> Self {
        Self {
            deltas: Vec::new(),
            many: keys_max.saturating_mul(APART + 2),
        }
    }

    pub(super) fn add(&mut self, delta: Option<Delta>) {
        self.deltas.extend(delta);
        if self.deltas.len() > self.many {
            self.merge();
        }
    }

    /// Moves those whose key may leave to `sink`.
    pub(super) fn take(&mut self, leaves: impl Fn(CounterKey) -> bool, sink: &mut Vec<Delta>) {
        self.deltas.retain(|delta| {
            let leaves = leaves(delta.key);
            if leaves {
                sink.push(*delta);
            }
            !leaves
        });
    }

    /// Leaves at most `APART + 1` deltas of each key.
    fn merge(&mut self) {
        self.deltas
            .sort_unstable_by_key(|delta| (delta.key, delta.window));
        let mut merged: Vec<Delta> = Vec::with_capacity(self.many);
        for same in self.deltas.chunk_by(|one, other| one.key == other.key) {
            let (old, apart) = same.split_at(same.len().saturating_sub(APART));
            merged.extend(old.iter().copied().reduce(together));
            merged.extend_from_slice(apart);
        }
        self.deltas = merged;
    }
}

/// Two sums of one key as one, in the earlier window.
const fn together(one: Delta, other: Delta) -> Delta {
    Delta {
        hits: one.hits.saturating_add(other.hits),
        leaked: one.leaked.saturating_add(other.leaked),
        returned: one.returned.saturating_add(other.returned),
        ..one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{edge::table::Slot, key::RuleId, window::WindowIndex};

    fn delta(key: u128, window: u64) -> Delta {
        Delta {
            slot: Slot(0),
            key: CounterKey(key),
            rule: RuleId(1),
            window: WindowIndex(window),
            hits: 1,
            leaked: 1,
            returned: 1,
        }
    }

    #[test]
    fn years_without_a_region_take_bounded_memory_and_lose_no_hit() {
        let mut late = Late::new(10);
        for window in 0..10_000 {
            late.add(Some(delta(u128::from(window % 7), window)));
            assert!(late.deltas.len() <= late.many);
        }
        let sum: u64 = late.deltas.iter().map(|delta| delta.hits).sum();
        assert_eq!(sum, 10_000);
        let returned: u64 = late.deltas.iter().map(|delta| delta.returned).sum();
        assert_eq!(returned, 10_000);
        let latest = late
            .deltas
            .iter()
            .filter(|delta| delta.window.0 >= 9_986)
            .count();
        assert_eq!(
            latest, 14,
            "the latest two of each of seven keys stand for themselves"
        );
    }
}
