//! The counts of one partition: as many keys as there is room for.
//!
//! Anybody can invent keys. Once there are as many as may be held, a new one takes
//! the place of one that has spent less than half of its limit: in a flood of
//! invented keys that is one of the flood. A hand goes round, and looks at a few
//! places for each new key; if none of them may go, the new key's hits are counted
//! for its rule and not for itself. Whoever is over a limit is never forgotten.

use ahash::RandomState;
use hashbrown::{HashTable, hash_table::Entry};

use super::kind::{KindIndex, Kinds};
use crate::{count::Count, key::CounterKey, time::Timestamp};

/// Places that the hand looks at for one new key.
const STEPS: usize = 32;

/// A count under its key: 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) key: CounterKey,
    pub(super) count: Count,
    pub(super) kind: KindIndex,
}

pub(super) struct Slots {
    table: HashTable<Slot>,
    hash: RandomState,
    keys_max: usize,
    hand: usize,
    /// Counts that made room for others.
    pub(super) evicted: u64,
    /// Hits of keys that there was no room for.
    pub(super) untracked: u64,
}

impl Slots {
    pub(super) const fn new(hash: RandomState) -> Self {
        Self {
            table: HashTable::new(),
            hash,
            keys_max: usize::MAX,
            hand: 0,
            evicted: 0,
            untracked: 0,
        }
    }

    /// Holds no more keys than this from now on; those that are held stay.
    pub(super) const fn set_keys_max(&mut self, keys_max: usize) {
        self.keys_max = keys_max;
    }

    /// The count of a key, fresh if there was none; none if there is no room.
    pub(super) fn of(
        &mut self,
        key: CounterKey,
        kind: KindIndex,
        kinds: &Kinds,
        now: Timestamp,
    ) -> Option<&mut Count> {
        if self.table.len() >= self.keys_max && self.find(key).is_none() {
            self.make_room(kinds, now)?;
        }
        Some(self.entry(key, kind))
    }

    /// The count of a key as it is, if there is one.
    pub(super) fn find(&self, key: CounterKey) -> Option<&Slot> {
        self.table
            .find(self.hash.hash_one(key.0), |slot| slot.key == key)
    }

    /// The same, to be changed.
    pub(super) fn find_mut(&mut self, key: CounterKey) -> Option<&mut Slot> {
        self.table
            .find_mut(self.hash.hash_one(key.0), |slot| slot.key == key)
    }

    /// Puts back a slot from a snapshot.
    pub(super) fn put(&mut self, slot: Slot) {
        *self.entry(slot.key, slot.kind) = slot.count;
    }

    /// Forgets counts that are spent.
    pub(super) fn sweep(&mut self, kinds: &Kinds, now: Timestamp) {
        self.table.retain(|slot| {
            kinds
                .get(slot.kind)
                .is_some_and(|kind| !slot.count.is_spent(&kind.quota, now))
        });
        let few = self.table.len().saturating_mul(4) < self.table.capacity();
        if few {
            let hash = &self.hash;
            self.table.shrink_to_fit(|slot| hash.hash_one(slot.key.0));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.table.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Memory that they take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.table.allocation_size()
    }

    fn entry(&mut self, key: CounterKey, kind: KindIndex) -> &mut Count {
        let hash = &self.hash;
        let entry = self.table.entry(
            hash.hash_one(key.0),
            |slot| slot.key == key,
            |slot| hash.hash_one(slot.key.0),
        );
        let slot = match entry {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(place) => place
                .insert(Slot {
                    key,
                    count: Count::default(),
                    kind,
                })
                .into_mut(),
        };
        &mut slot.count
    }

    /// Takes one key out that may go; none if the hand meets none.
    fn make_room(&mut self, kinds: &Kinds, now: Timestamp) -> Option<()> {
        let places = self.table.num_buckets();
        for _ in 0..STEPS.min(places) {
            self.hand = (self.hand + 1) % places;
            let Ok(entry) = self.table.get_bucket_entry(self.hand) else {
                continue;
            };
            if may_go(entry.get(), kinds, now) {
                entry.remove();
                self.evicted = self.evicted.saturating_add(1);
                return Some(());
            }
        }
        None
    }
}

/// Whether less than half of its limit is spent.
fn may_go(slot: &Slot, kinds: &Kinds, now: Timestamp) -> bool {
    kinds.get(slot.kind).is_none_or(|kind| {
        let left = slot.count.remaining(&kind.quota, now);
        left > kind.quota.capacity() / 2
    })
}
