//! A set of hashes: two thirds full, so that twelve bytes hold one.
//!
//! A hash is its own place, as a part of the whole; one whose place is taken stands in
//! the next that is free. Hashes are secret and evenly spread, so no more is needed.

use alloc::{boxed::Box, vec};

/// A slot that nothing stands in. A hash that is this is taken for the next number.
const FREE: u64 = 0;

#[derive(Clone)]
pub(super) struct Table {
    slots: Box<[u64]>,
    len: usize,
}

impl Table {
    pub(super) fn new(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
        let count = hashes.len();
        let size = count.saturating_add(count / 2).saturating_add(1);
        let mut slots = vec![FREE; size].into_boxed_slice();
        let mut len = 0;
        for hash in hashes {
            let hash = hash.max(FREE + 1);
            let found = Self::probe(size, hash).find(|&place| {
                let there = slots.get(place).copied();
                there == Some(FREE) || there == Some(hash)
            });
            if let Some(slot) = found.and_then(|place| slots.get_mut(place)) {
                len += usize::from(*slot == FREE);
                *slot = hash;
            }
        }
        Self { slots, len }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn has(&self, hash: u64) -> bool {
        let hash = hash.max(FREE + 1);
        for place in Self::probe(self.slots.len(), hash) {
            match self.slots.get(place) {
                Some(&there) if there == hash => return true,
                Some(&FREE) | None => return false,
                Some(_) => {}
            }
        }
        false
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().copied().filter(|hash| *hash != FREE)
    }

    /// The places that a hash may stand in, the first one first.
    fn probe(size: usize, hash: u64) -> impl Iterator<Item = usize> {
        let part = (u128::from(hash) * size as u128) >> 64;
        let first = usize::try_from(part).unwrap_or(0);
        (first..size).chain(0..first)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_what_was_put_into_it_however_unevenly_spread(
            hashes in prop::collection::vec(prop_oneof![0_u64..40, any::<u64>()], 0..60),
            others in prop::collection::vec(0_u64..60, 0..60),
        ) {
            let table = Table::new(hashes.iter().copied());
            let mut distinct: Vec<u64> = hashes.iter().map(|hash| (*hash).max(1)).collect();
            distinct.sort_unstable();
            distinct.dedup();
            let mut kept: Vec<u64> = table.iter().collect();
            kept.sort_unstable();
            prop_assert_eq!(&kept, &distinct);
            prop_assert_eq!(table.len(), distinct.len());
            for other in hashes.iter().chain(&others) {
                prop_assert_eq!(table.has(*other), distinct.contains(&(*other).max(1)));
            }
        }
    }

    #[test]
    fn a_value_takes_at_most_sixteen_bytes() {
        let table =
            Table::new((0..1_000_u32).map(|n| u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        assert!(table.slots.len() * 8 <= 1_000 * 16);
    }
}
