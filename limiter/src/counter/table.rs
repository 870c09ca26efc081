//! A table of named entries that end some day, swept a few at a time.

use ahash::RandomState;
use hashbrown::{HashTable, hash_table::Entry};

use crate::time::Timestamp;

/// Places looked at in one step of sweeping: a fraction of a millisecond.
const PLACES_PER_STEP: usize = 1_024;

/// The most entries that are moved at once to give memory back.
const SHRINK_MAX: usize = 65_536;

/// Something with a name and an end.
pub(super) trait Named {
    /// Its name, the only one of its kind in a table.
    fn name(&self) -> &str;

    /// When it is as if it had never been; none: never.
    fn ends(&self) -> Option<Timestamp>;

    /// Whether it has ended.
    fn is_over(&self, now: Timestamp) -> bool {
        self.ends().is_some_and(|end| end <= now)
    }
}

/// Entries by name.
pub(super) struct Table<T> {
    entries: HashTable<T>,
    hash: RandomState,
    /// The place that is looked at next by the sweep.
    next: usize,
}

impl<T: Named> Table<T> {
    pub(super) fn new(hash: &RandomState) -> Self {
        Self {
            entries: HashTable::new(),
            hash: hash.clone(),
            next: 0,
        }
    }

    /// The entry of this name, ended or not.
    pub(super) fn find(&self, name: &str) -> Option<&T> {
        self.entries
            .find(self.hash.hash_one(name), |entry| entry.name() == name)
    }

    /// Puts an entry in the place of the one of its name. Returns whether there
    /// was none.
    pub(super) fn put(&mut self, entry: T) -> bool {
        let hash = &self.hash;
        let place = self.entries.entry(
            hash.hash_one(entry.name()),
            |known| known.name() == entry.name(),
            |known| hash.hash_one(known.name()),
        );
        match place {
            Entry::Occupied(mut known) => {
                *known.get_mut() = entry;
                false
            }
            Entry::Vacant(place) => {
                place.insert(entry);
                true
            }
        }
    }

    /// Takes out the entry of this name.
    pub(super) fn remove(&mut self, name: &str) -> Option<T> {
        let hash = self.hash.hash_one(name);
        let found = self
            .entries
            .find_entry(hash, |entry| entry.name() == name)
            .ok()?;
        Some(found.remove().0)
    }

    /// Looks at the next few places and takes out what has ended. Returns whether
    /// that was the last of them.
    pub(super) fn sweep(&mut self, now: Timestamp, mut gone: impl FnMut(T)) -> bool {
        let end = self.next.saturating_add(PLACES_PER_STEP);
        for place in self.next..end.min(self.entries.num_buckets()) {
            if let Ok(entry) = self.entries.get_bucket_entry(place)
                && entry.get().is_over(now)
            {
                gone(entry.remove().0);
            }
        }
        self.next = end;
        if self.next < self.entries.num_buckets() {
            return false;
        }
        self.next = 0;
        self.shrink();
        true
    }

    /// Gives memory back, if there is much of it and that is soon done.
    fn shrink(&mut self) {
        let few = self.entries.len().saturating_mul(4) < self.entries.capacity();
        if few && self.entries.len() <= SHRINK_MAX {
            let hash = &self.hash;
            self.entries
                .shrink_to_fit(|entry| hash.hash_one(entry.name()));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    struct Entry(String, u64);

    impl Named for Entry {
        fn name(&self) -> &str {
            &self.0
        }
        fn ends(&self) -> Option<Timestamp> {
            Some(Timestamp::from_micros(self.1))
        }
    }

    #[test]
    fn a_sweep_takes_out_all_that_has_ended_in_steps_of_a_bounded_size() {
        let mut table = Table::new(&RandomState::with_seeds(1, 2, 3, 4));
        for n in 0..10_000_u64 {
            table.put(Entry(n.to_string(), n % 10));
        }
        let now = Timestamp::from_micros(8);
        let (mut steps, mut gone_most) = (1, 0);
        loop {
            let mut gone = 0;
            let done = table.sweep(now, |entry| {
                assert!(entry.1 <= 8);
                gone += 1;
            });
            gone_most = gone.max(gone_most);
            if done {
                break;
            }
            steps += 1;
        }
        assert_eq!(table.len(), 1_000);
        assert!(steps > 5 && gone_most <= PLACES_PER_STEP, "{steps}");
        assert!(table.find("9").is_some() && table.find("8").is_none());
        assert!(table.entries.capacity() < 4_000);
    }

    #[test]
    fn an_entry_takes_the_place_of_the_one_of_its_name() {
        let mut table = Table::new(&RandomState::with_seeds(1, 2, 3, 4));
        assert!(table.put(Entry("a".to_string(), 1)));
        assert!(!table.put(Entry("a".to_string(), 2)));
        assert_eq!(table.remove("a").map(|entry| entry.1), Some(2));
        assert!(table.remove("a").is_none());
    }
}
