//! Hits of one partition on their way to the aggregator above: those that wait, and
//! the batch under way.
//!
//! Both are part of the books. Each step is on record before it shows outside, so that
//! a region that starts again sends the same batch under the same number, and no other.

use alloc::vec::Vec;

use ahash::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::{
    key::{CounterKey, PARTITIONS, RuleId},
    time::{Micros, Timestamp},
    window::WindowIndex,
    wire::{Ack, Batch, CountGroup, ack::Status},
};

/// How long to wait for an acknowledgement before sending again.
const RESEND_AFTER: Micros = Micros::from_millis(1_500);

/// Windows of a key that stand for themselves; older ones go into one sum, which only
/// the books need.
const APART: usize = 2;

/// The most keys and windows in one batch.
const BATCH_MAX: usize = 32_768;

/// A window so long ago that it matters to no decision.
const LONG_AGO: WindowIndex = WindowIndex(1);

/// Hits of one key in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) struct Slice {
    pub(in crate::ledger) rule: RuleId,
    pub(in crate::ledger) window: WindowIndex,
    pub(in crate::ledger) hits: u64,
    pub(in crate::ledger) leaked: u64,
    pub(in crate::ledger) returned: u64,
}

/// One partition's way up.
pub(in crate::ledger) struct Stream {
    partition: u32,
    epoch: u64,
    sequence: u64,
    /// The epoch that the next batch begins, if it is another.
    life: u64,
    pending: HashMap<CounterKey, SmallVec<[Slice; 1]>, RandomState>,
    under_way: Option<UnderWay>,
    keys_max: usize,
}

struct UnderWay {
    batch: Batch,
    hits: HashMap<CounterKey, u64, RandomState>,
    /// When it was last sent; none if it has to be sent (again).
    sent: Option<Timestamp>,
    message: u64,
}

/// What an acknowledgement comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum Fate {
    /// The batch is in the books above.
    Counted,
    /// It has to begin another life.
    Anew,
    /// Nothing new.
    Same,
}

/// A stream as a snapshot has it.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::ledger) struct StreamEntry {
    #[prost(fixed64, tag = "1")]
    epoch: u64,
    #[prost(uint64, tag = "2")]
    sequence: u64,
    #[prost(fixed64, tag = "3")]
    life: u64,
    #[prost(message, optional, tag = "4")]
    under_way: Option<Batch>,
    #[prost(message, repeated, tag = "5")]
    pending: Vec<CountGroup>,
}

impl Stream {
    pub(in crate::ledger) fn new(partition: u32, hash: &RandomState) -> Self {
        Self {
            partition,
            epoch: 0,
            sequence: 0,
            life: 0,
            pending: HashMap::with_hasher(hash.clone()),
            under_way: None,
            keys_max: usize::MAX,
        }
    }

    /// Lets no more keys than this wait; hits of others stand for their rule alone.
    pub(in crate::ledger) const fn set_keys_max(&mut self, keys_max: usize) {
        self.keys_max = keys_max;
    }

    /// The next batch is the first of this life.
    pub(in crate::ledger) fn begin_life(&mut self, epoch: u64) {
        self.life = epoch.max(self.epoch.saturating_add(1));
    }

    /// Takes in hits that were counted here.
    pub(in crate::ledger) fn note(&mut self, key: CounterKey, slice: Slice) {
        let (key, slice) = if self.pending.len() < self.keys_max || self.pending.contains_key(&key)
        {
            (key, slice)
        } else {
            let window = LONG_AGO;
            (rest(self.partition), Slice { window, ..slice })
        };
        let slices = self.pending.entry(key).or_default();
        let same = |known: &&mut Slice| (known.rule, known.window) == (slice.rule, slice.window);
        match slices.iter_mut().find(same) {
            Some(known) => *known = together(known, &slice),
            None => slices.push(slice),
        }
        merge(slices, slice.rule);
    }

    /// Whether there is something to make a batch of, and room for one.
    pub(in crate::ledger) fn can_cut(&self) -> bool {
        self.under_way.is_none() && !self.pending.is_empty()
    }

    /// Makes a batch of what is pending, or of as much as fits.
    pub(in crate::ledger) fn cut(&mut self) {
        if !self.can_cut() {
            return;
        }
        if self.life > self.epoch {
            self.epoch = self.life;
            self.sequence = 0;
        }
        self.sequence = self.sequence.saturating_add(1);
        let mut slices = self.sorted();
        let rest = slices.split_off(slices.len().min(BATCH_MAX));
        self.pending.clear();
        for (key, slice) in rest {
            self.pending.entry(key).or_default().push(slice);
        }
        let batch = Batch {
            partition: self.partition,
            epoch: self.epoch,
            sequence: self.sequence,
            groups: groups(&slices),
        };
        self.under_way = Some(self.on_its_way(batch));
    }

    fn on_its_way(&self, batch: Batch) -> UnderWay {
        let mut hits = HashMap::with_hasher(self.pending.hasher().clone());
        for group in &batch.groups {
            for (key, more) in keys(group).zip(&group.hits) {
                let sum: &mut u64 = hits.entry(key).or_default();
                *sum = sum.saturating_add(*more);
            }
        }
        UnderWay {
            batch,
            hits,
            sent: None,
            message: 0,
        }
    }

    /// The batch under way, if it is time to send it, with this message.
    pub(in crate::ledger) fn due(&mut self, message: u64, now: Timestamp) -> Option<&Batch> {
        let way = self.under_way.as_mut()?;
        let waits = way.sent.is_some_and(|sent| now.since(sent) < RESEND_AFTER);
        if waits {
            return None;
        }
        way.sent = Some(now);
        way.message = message;
        Some(&way.batch)
    }

    /// Takes in that a message was not answered: a batch in it is due again.
    pub(in crate::ledger) fn unanswered(&mut self, message: u64) {
        if let Some(way) = &mut self.under_way
            && way.message == message
        {
            way.sent = None;
        }
    }

    /// What the aggregator above says of a batch, in answer to `message`.
    pub(in crate::ledger) fn judge(&mut self, ack: &Ack, message: u64) -> Fate {
        let Some(way) = &mut self.under_way else {
            return Fate::Same;
        };
        if way.batch.sequence != ack.sequence {
            return Fate::Same;
        }
        match ack.status() {
            Status::Counted | Status::Duplicate => Fate::Counted,
            // What an earlier message was told has been seen to already.
            Status::Gap | Status::StaleEpoch if way.message != message => Fate::Same,
            Status::Gap | Status::StaleEpoch => Fate::Anew,
            Status::Future => {
                for group in &mut way.batch.groups {
                    group.window = 0;
                }
                way.sent = None;
                Fate::Same
            }
            Status::Unknown => Fate::Same,
        }
    }

    /// The batch under way is in the books above.
    pub(in crate::ledger) fn acknowledged(&mut self) {
        self.under_way = None;
    }

    /// The batch under way begins another life.
    pub(in crate::ledger) fn anew(&mut self, epoch: u64) {
        self.epoch = epoch.max(self.epoch.saturating_add(1));
        self.sequence = 1;
        if let Some(way) = &mut self.under_way {
            way.batch.epoch = self.epoch;
            way.batch.sequence = 1;
            way.sent = None;
        }
    }

    /// Hits of a key that are not in the books above, as far as is known; and of those,
    /// the ones in a batch of this message.
    pub(in crate::ledger) fn unacked(&self, key: CounterKey, message: u64) -> (u64, u64) {
        let slices = self.pending.get(&key);
        let pending = slices.into_iter().flatten().map(|slice| slice.hits);
        let pending = pending.fold(0, u64::saturating_add);
        let way = self.under_way.as_ref();
        let batched = way.map_or(0, |way| way.hits.get(&key).copied().unwrap_or(0));
        let told = way.is_some_and(|way| way.message == message);
        let sum = pending.saturating_add(batched);
        (sum, if told { batched } else { 0 })
    }

    /// Keys and windows that wait or are on their way.
    pub(in crate::ledger) fn len(&self) -> usize {
        let pending = self.pending.values().map(SmallVec::len).sum::<usize>();
        let way = self.under_way.as_ref();
        pending.saturating_add(way.map_or(0, |way| way.hits.len()))
    }

    /// As a snapshot has it; none if nothing was ever sent.
    pub(in crate::ledger) fn entry(&self) -> Option<StreamEntry> {
        let entry = StreamEntry {
            epoch: self.epoch,
            sequence: self.sequence,
            life: self.life,
            under_way: self.under_way.as_ref().map(|way| way.batch.clone()),
            pending: groups(&self.sorted()),
        };
        (entry != StreamEntry::default()).then_some(entry)
    }

    /// Reads back what a snapshot has.
    pub(in crate::ledger) fn restore(&mut self, entry: StreamEntry) {
        self.epoch = entry.epoch;
        self.sequence = entry.sequence;
        self.life = entry.life;
        self.under_way = entry.under_way.map(|batch| self.on_its_way(batch));
        for group in &entry.pending {
            for (place, key) in keys(group).enumerate() {
                let value = |column: &[u64]| column.get(place).copied().unwrap_or(0);
                let slice = Slice {
                    rule: RuleId(group.rule),
                    window: WindowIndex(group.window),
                    hits: value(&group.hits),
                    leaked: value(&group.leaked),
                    returned: value(&group.returned),
                };
                self.pending.entry(key).or_default().push(slice);
            }
        }
    }

    /// What is pending, in the order of a batch.
    fn sorted(&self) -> Vec<(CounterKey, Slice)> {
        let of_key = |(key, slices): (&CounterKey, &SmallVec<[Slice; 1]>)| {
            let key = *key;
            slices.clone().into_iter().map(move |slice| (key, slice))
        };
        let mut slices: Vec<_> = self.pending.iter().flat_map(of_key).collect();
        slices.sort_unstable_by_key(|(key, slice)| (slice.rule, slice.window, *key));
        slices
    }
}

/// The key that hits of keys without a place stand under: nobody's.
const fn rest(partition: u32) -> CounterKey {
    let bits = PARTITIONS.trailing_zeros();
    CounterKey((partition as u128) << (128 - bits))
}

/// Two slices of one key as one, in the earlier window.
fn together(one: &Slice, other: &Slice) -> Slice {
    Slice {
        rule: one.rule,
        window: one.window.min(other.window),
        hits: one.hits.saturating_add(other.hits),
        leaked: one.leaked.saturating_add(other.leaked),
        returned: one.returned.saturating_add(other.returned),
    }
}

/// Leaves at most `APART + 1` slices of a rule.
fn merge(slices: &mut SmallVec<[Slice; 1]>, rule: RuleId) {
    let of_rule = |slice: &&Slice| slice.rule == rule;
    if slices.iter().filter(of_rule).count() <= APART + 1 {
        return;
    }
    slices.sort_unstable_by_key(|slice| (slice.rule != rule, slice.window));
    if let [old, next, ..] = slices.as_mut_slice() {
        *old = together(old, next);
        slices.remove(1);
    }
}

/// Columns, one group for each rule and window. They come sorted.
fn groups(slices: &[(CounterKey, Slice)]) -> Vec<CountGroup> {
    let alike = |one: &(CounterKey, Slice), other: &(CounterKey, Slice)| {
        (one.1.rule, one.1.window) == (other.1.rule, other.1.window)
    };
    let group = |same: &[(CounterKey, Slice)]| {
        let (_, first) = same.first()?;
        let keys: Vec<u8> = same.iter().flat_map(|(key, _)| key.to_bytes()).collect();
        Some(CountGroup {
            rule: first.rule.0,
            window: first.window.0,
            keys: keys.into(),
            hits: same.iter().map(|(_, slice)| slice.hits).collect(),
            leaked: sparse(same, |slice| slice.leaked),
            returned: sparse(same, |slice| slice.returned),
        })
    };
    slices.chunk_by(alike).filter_map(group).collect()
}

/// A column that is left out if all of it is zero.
fn sparse(slices: &[(CounterKey, Slice)], value: impl Fn(&Slice) -> u64) -> Vec<u64> {
    let values = || slices.iter().map(|(_, slice)| value(slice));
    if values().any(|value| value > 0) {
        values().collect()
    } else {
        Vec::new()
    }
}

fn keys(group: &CountGroup) -> impl Iterator<Item = CounterKey> {
    crate::ledger::shard::keys(&group.keys)
}
