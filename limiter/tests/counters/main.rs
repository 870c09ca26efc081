//! Counters beside a model that is too simple to be wrong, over deaths and
//! restarts from any snapshot.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

#[path = "../common/mod.rs"]
mod common;
mod facts;
mod model;

use common::{Log, SEEDS};
use limiter::{
    counter::{Add, AddError, Added, CounterId, Counters, IdempotencyKey, TenantLimits},
    key::PARTITIONS,
    time::{Micros, Timestamp},
};

/// How long a key is remembered here.
const LIFETIME: Micros = Micros::from_secs(100);

const ROOMY: TenantLimits = TenantLimits {
    counters_max: 1_000_000,
    bytes_max: 1 << 30,
};

fn id(name: &str) -> CounterId {
    CounterId::new("tenant", "space", name).unwrap()
}

fn key(key: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::new(key).unwrap())
}

/// Counters and their log.
struct Books {
    counters: Counters,
    log: Log,
}

/// Every partition, with what it contains.
type Snapshot = Vec<(u64, Vec<Vec<u8>>)>;

impl Books {
    fn new(limits: TenantLimits) -> Self {
        Self {
            counters: Counters::new(SEEDS, limits, LIFETIME),
            log: Log::default(),
        }
    }

    fn add(&mut self, add: &Add, now: Timestamp) -> Result<Added, AddError> {
        self.counters.add(add, now, &mut self.log)
    }

    fn value(&self, name: &str, now: Timestamp) -> Option<i64> {
        let seen = self.counters.read(&id(name), now);
        seen.counter.map(|counter| counter.value)
    }

    fn partition(&self, partition: u32) -> (u64, Vec<Vec<u8>>) {
        let mut chunks = Vec::new();
        self.counters
            .snapshot(partition, &mut |chunk| chunks.push(chunk.to_vec()));
        (self.log.0.len() as u64, chunks)
    }

    fn snapshot(&self) -> Snapshot {
        (0..PARTITIONS)
            .map(|partition| self.partition(partition))
            .collect()
    }

    /// Dies, and comes back from a snapshot and the log after it, `again` times
    /// over.
    fn restart(&mut self, snapshot: &Snapshot, again: usize) {
        self.counters = Counters::new([9, 8, 7, 6], ROOMY, LIFETIME);
        for (partition, (contains, chunks)) in (0..).zip(snapshot) {
            for chunk in chunks.iter().map(Vec::as_slice).chain([[].as_slice()]) {
                self.counters.restore(partition, *contains, chunk).unwrap();
            }
        }
        for _ in 0..=again {
            for (position, record) in (1..).zip(&self.log.0) {
                self.counters.replay(position, record).unwrap();
            }
        }
    }
}
