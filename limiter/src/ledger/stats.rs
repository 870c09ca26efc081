//! What a ledger tells of itself: for metrics, and for whoever compares books.

use alloc::vec::Vec;

use ahash::RandomState;
use hashbrown::HashMap;

use super::{
    Crush, Ledger,
    shard::{Book, Shard},
};
use crate::{key::RuleId, time::Timestamp};

impl Ledger {
    /// Hits counted since the beginning, by rule: the books, which no window
    /// ends. Those that were given back are among them.
    pub fn hits_by_rule(&self) -> Vec<(RuleId, u64)> {
        self.by_rule(|book| book.hits)
    }

    /// Of the hits counted since the beginning, those given back, by rule.
    pub fn returned_by_rule(&self) -> Vec<(RuleId, u64)> {
        self.by_rule(|book| book.returned)
    }

    fn by_rule(&self, of: impl Fn(&Book) -> u64) -> Vec<(RuleId, u64)> {
        let mut sums: HashMap<RuleId, u64, RandomState> =
            HashMap::with_hasher(self.leaked.hasher().clone());
        for (rule, book) in self.shards.iter().flat_map(|shard| &shard.books) {
            let sum = sums.entry(*rule).or_insert(0);
            *sum = sum.saturating_add(of(book));
        }
        sorted(sums)
    }

    /// Hits that sources reported as leaked since this ledger was made, by rule.
    pub fn leaked_by_rule(&self) -> Vec<(RuleId, u64)> {
        sorted(self.leaked.clone())
    }

    /// What became of keys that there was no room for.
    pub fn crush(&self) -> Crush {
        let sum = |of: fn(&Shard) -> u64| {
            let each = self.shards.iter().map(of);
            each.fold(0, u64::saturating_add)
        };
        Crush {
            evicted_keys: sum(|shard| shard.slots.evicted),
            untracked_hits: sum(|shard| shard.slots.untracked),
            unrecorded_loans: sum(|shard| shard.loans.unrecorded),
        }
    }

    /// Counts held.
    pub fn keys(&self) -> usize {
        self.shards.iter().map(|shard| shard.slots.len()).sum()
    }

    /// Memory that books, loans and what is known of sources take, in bytes, as
    /// far as it grows with them.
    pub fn bytes(&self) -> u64 {
        let shards = self.shards.iter().map(Shard::bytes);
        (shards.sum::<usize>() + self.sources.bytes()) as u64
    }

    /// Sources heard of in the last half minute.
    pub fn sources(&self, now: Timestamp) -> usize {
        self.sources.count(now)
    }
}

/// In the order of the rules' identities, so that no table's order shows.
fn sorted(sums: HashMap<RuleId, u64, RandomState>) -> Vec<(RuleId, u64)> {
    let mut sums: Vec<(RuleId, u64)> = sums.into_iter().collect();
    sums.sort_unstable();
    sums
}
