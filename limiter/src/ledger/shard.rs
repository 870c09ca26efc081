//! One partition of the books: its counts, who has been counted how far, and
//! what is lent on them.

use alloc::vec::Vec;

use ahash::RandomState;
use hashbrown::HashMap;

use super::{
    kind::Kinds,
    loans::Loans,
    record::Forwarding,
    slots::Slots,
    upstream::{Slice, Stakes, Stream},
};
use crate::{
    count::Count,
    key::{CounterKey, RuleId},
    quota::Quota,
    time::{Micros, Timestamp},
    window::WindowIndex,
    wire::{Ack, Batch, CountGroup, ack::Status},
};

/// How long a source may be silent before its sequence is forgotten. A batch
/// that is sent again later than this starts a new life of the source.
pub(super) const SEQUENCE_MEMORY: Micros = Micros::from_secs(24 * 3_600);

/// How far a source has been counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) epoch: u64,
    pub(super) sequence: u64,
    pub(super) heard: Timestamp,
}

/// What a rule has come to since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Book {
    /// Hits counted.
    pub(super) hits: u64,
    /// Of those, hits given back.
    pub(super) returned: u64,
}

/// One partition of the books.
pub(super) struct Shard {
    /// The position of the last record it has taken in.
    pub(super) contains: u64,
    pub(super) slots: Slots,
    pub(super) marks: HashMap<u64, Mark, RandomState>,
    /// What each rule has come to since the beginning.
    pub(super) books: HashMap<RuleId, Book, RandomState>,
    pub(super) loans: Loans,
    /// Hits on their way to the aggregator above.
    pub(super) stream: Stream,
    /// What this region holds of keys of global limits.
    pub(super) stakes: Stakes,
    pub(super) stakes_max: usize,
    /// Keys to be claimed with the next flush.
    pub(super) dirty: Vec<CounterKey>,
    /// When the aggregator above has to be told, if that is before the next flush.
    pub(super) hasty: Option<Timestamp>,
}

impl Shard {
    pub(super) fn new(partition: u32, hash: &RandomState) -> Self {
        Self {
            contains: 0,
            slots: Slots::new(hash.clone()),
            marks: HashMap::with_hasher(hash.clone()),
            books: HashMap::with_hasher(hash.clone()),
            loans: Loans::new(hash.clone()),
            stream: Stream::new(partition, hash),
            stakes: HashMap::with_hasher(hash.clone()),
            stakes_max: usize::MAX,
            dirty: Vec::new(),
            hasty: None,
        }
    }

    /// Where a batch stands: to be counted, or why not.
    pub(super) fn judge(&self, source: u64, batch: &Batch, kinds: &Kinds, now: Timestamp) -> Ack {
        let mark = self.marks.get(&source);
        let next = match mark {
            Some(mark) if mark.epoch == batch.epoch => mark.sequence.saturating_add(1),
            _ => 1,
        };
        let status = if mark.is_some_and(|mark| mark.epoch > batch.epoch) {
            Status::StaleEpoch
        } else if batch.sequence < next {
            Status::Duplicate
        } else if batch.sequence > next {
            Status::Gap
        } else if batch
            .groups
            .iter()
            .any(|group| in_the_future(group, kinds, now))
        {
            Status::Future
        } else {
            Status::Counted
        };
        Ack {
            partition: batch.partition,
            sequence: batch.sequence,
            status: status.into(),
            expected: next,
        }
    }

    /// Counts a batch that was judged fit.
    pub(super) fn count(
        &mut self,
        source: u64,
        batch: &Batch,
        forwarding: Forwarding,
        kinds: &Kinds,
        now: Timestamp,
    ) {
        if source != 0 {
            let mark = Mark {
                epoch: batch.epoch,
                sequence: batch.sequence,
                heard: now,
            };
            self.marks.insert(source, mark);
        }
        for group in &batch.groups {
            self.count_group(group, forwarding, kinds, now);
        }
    }

    fn count_group(
        &mut self,
        group: &CountGroup,
        forwarding: Forwarding,
        kinds: &Kinds,
        now: Timestamp,
    ) {
        let rule = RuleId(group.rule);
        let book = self.books.entry(rule).or_default();
        book.hits = book.hits.saturating_add(sum(&group.hits));
        book.returned = book.returned.saturating_add(sum(&group.returned));
        let Some((index, kind)) = kinds
            .of_rule(rule)
            .and_then(|(index, _)| Some((index, kinds.get(index)?)))
        else {
            return;
        };
        let window = match group.window {
            0 => kind.quota.window.index(now),
            window => WindowIndex(window),
        };
        for (place, (key, hits)) in keys(&group.keys).zip(&group.hits).enumerate() {
            let leaked = group.leaked.get(place).copied().unwrap_or(0).min(*hits);
            let Some(count) = self.slots.of(key, index, kinds, now) else {
                self.slots.untracked = self.slots.untracked.saturating_add(*hits);
                continue;
            };
            count.add_late(&kind.quota, window, hits.saturating_sub(leaked), now);
            count.add_leaked(&kind.quota, window, leaked, now);
        }
        if forwarding != Forwarding::Kept && kinds.is_global(rule) {
            self.forward_group(group, window, forwarding, now);
        }
        // A key may stand twice in a group: what is given back has been counted then. One
        // that is not held has nothing to give back.
        let returned = keys(&group.keys).zip(&group.returned);
        for (key, hits) in returned.filter(|(_, hits)| **hits > 0) {
            if let Some(slot) = self.slots.find_mut(key) {
                slot.count.give_back(&kind.quota, window, *hits, now);
            }
        }
    }

    fn forward_group(
        &mut self,
        group: &CountGroup,
        window: WindowIndex,
        forwarding: Forwarding,
        now: Timestamp,
    ) {
        for (place, key) in keys(&group.keys).enumerate() {
            let value = |column: &[u64]| column.get(place).copied().unwrap_or(0);
            let (hits, returned) = (value(&group.hits), value(&group.returned));
            let leaked = match forwarding {
                Forwarding::Alone => hits,
                Forwarding::Kept | Forwarding::Forwarded => value(&group.leaked).min(hits),
            };
            let slice = Slice {
                rule: RuleId(group.rule),
                window,
                hits,
                leaked,
                returned,
            };
            if hits > 0 || returned > 0 {
                self.forward(key, slice, now);
            }
        }
    }

    /// The count of a key as it is; a fresh one if there is none.
    pub(super) fn count_of(&self, key: CounterKey) -> Count {
        self.slots
            .find(key)
            .map_or_else(Count::default, |slot| slot.count)
    }

    /// What of a key is lent, and what is kept back beyond that of `reserve`, which
    /// sources may admit unasked unless they know better; in millionths of a hit.
    /// `freed` is what becomes free of it each second.
    pub(super) fn lent_or_kept(
        &mut self,
        key: CounterKey,
        freed: u64,
        reserve: u64,
        now: Timestamp,
    ) -> u64 {
        let Some(loans) = self.loans.find(key) else {
            return reserve;
        };
        let (lent, covered) = loans.lent_and_covered(freed, now);
        if loans.is_known_crowded(now) {
            lent
        } else {
            lent.saturating_add(reserve.saturating_sub(covered))
        }
    }

    /// Forgets some of the loans that ran out, and with the last of them counts
    /// that are spent and sources that have long been silent. Returns whether it
    /// has done all that.
    pub(super) fn sweep(&mut self, kinds: &Kinds, now: Timestamp) -> bool {
        if !self.loans.sweep(now) {
            return false;
        }
        self.slots.sweep(kinds, now);
        self.stakes.retain(|_, stake| !stake.is_over(now));
        self.marks
            .retain(|_, mark| now.since(mark.heard) < SEQUENCE_MEMORY);
        true
    }

    /// Holds no more keys than this from now on, nor loans on more keys.
    pub(super) const fn set_keys_max(&mut self, keys_max: usize) {
        self.stakes_max = keys_max;
        self.stream.set_keys_max(keys_max);
        self.slots.set_keys_max(keys_max);
        self.loans.set_keys_max(keys_max);
    }
}

fn sum(column: &[u64]) -> u64 {
    let add = |sum: u64, hits: &u64| sum.saturating_add(*hits);
    column.iter().fold(0, add)
}

/// The keys of a column: sixteen bytes each.
pub(super) fn keys(column: &[u8]) -> impl Iterator<Item = CounterKey> {
    column
        .as_chunks()
        .0
        .iter()
        .map(|bytes| CounterKey::from_bytes(*bytes))
}

/// Whether a group was counted in a window that is yet to come. The very next
/// one is let pass: two clocks never quite agree.
fn in_the_future(group: &CountGroup, kinds: &Kinds, now: Timestamp) -> bool {
    let quota: Option<&Quota> = kinds
        .of_rule(RuleId(group.rule))
        .and_then(|(index, _)| kinds.get(index))
        .map(|kind| &kind.quota);
    quota.is_some_and(|quota| group.window > quota.window.index(now).0.saturating_add(1))
}
