//! The key table: bounded, and it never forgets what still matters.
//!
//! Entries stand in slots that do not move, so that lists can name them. When
//! all slots are taken a hand goes round, as in the clock algorithm, and takes
//! the first entry that has not been used since it last came by and that may go
//! ([`Entry::is_evictable`]): everything it counted is in the region's books,
//! and it is not over its limit. If it finds none within a bounded number of
//! steps, the new key goes without an entry.

use ahash::RandomState;
use alloc::vec::Vec;
use hashbrown::HashTable;

use super::entry::Entry;
use crate::{key::CounterKey, time::Timestamp};

/// How many slots the hand looks at for one new key.
const STEPS: usize = 32;

/// An entry's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u32);

impl Slot {
    /// The place of a key that has none.
    pub(super) const NOWHERE: Self = Self(u32::MAX);
}

pub(super) struct Table {
    entries: Vec<Entry>,
    by_key: HashTable<Slot>,
    hash: RandomState,
    keys_max: usize,
    hand: usize,
}

impl Table {
    pub(super) const fn new(hash: RandomState, keys_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            by_key: HashTable::new(),
            hash,
            keys_max,
            hand: 0,
        }
    }

    /// The entry of a key, if there is one.
    pub(super) fn find(&self, key: CounterKey) -> Option<Slot> {
        let hash = self.hash.hash_one(key.0);
        self.by_key.find(hash, |slot| self.has(*slot, key)).copied()
    }

    /// The entry of a key, made if there is none; none if there is no room.
    pub(super) fn find_or_insert(
        &mut self,
        key: CounterKey,
        turn: u64,
        now: Timestamp,
        fresh: impl FnOnce() -> Entry,
    ) -> Option<Slot> {
        if let Some(slot) = self.find(key) {
            return Some(slot);
        }
        let entry = fresh();
        let slot = if self.entries.len() < self.keys_max {
            let slot = Slot(u32::try_from(self.entries.len()).ok()?);
            self.entries.push(entry);
            slot
        } else {
            let slot = self.victim(turn, now)?;
            self.forget(slot);
            *self.get_mut(slot)? = entry;
            slot
        };
        let (entries, hash) = (&self.entries, &self.hash);
        self.by_key
            .insert_unique(hash.hash_one(key.0), slot, |slot| {
                entries
                    .get(slot.0 as usize)
                    .map_or(0, |entry| hash.hash_one(entry.key.0))
            });
        Some(slot)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot.0 as usize)
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Entry> {
        self.entries.get_mut(slot.0 as usize)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    fn has(&self, slot: Slot, key: CounterKey) -> bool {
        self.get(slot).is_some_and(|entry| entry.key == key)
    }

    fn victim(&mut self, turn: u64, now: Timestamp) -> Option<Slot> {
        for _ in 0..STEPS.min(self.entries.len()) {
            self.hand = (self.hand + 1) % self.entries.len().max(1);
            let entry = self.entries.get_mut(self.hand)?;
            if !entry.is_evictable(turn, now) {
                continue;
            }
            if !entry.touched {
                return u32::try_from(self.hand).ok().map(Slot);
            }
            entry.touched = false;
        }
        None
    }

    fn forget(&mut self, slot: Slot) {
        let Some(key) = self.get(slot).map(|entry| entry.key) else {
            return;
        };
        let hash = self.hash.hash_one(key.0);
        if let Ok(found) = self.by_key.find_entry(hash, |other| *other == slot) {
            found.remove();
        }
    }
}
