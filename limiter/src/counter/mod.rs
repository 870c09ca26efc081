//! Durable counters: sums that anyone may add to, and that nobody counts twice.
//!
//! A counter is a whole number under a name. It is *never written* until the
//! first add that is applied, or the first reset; that is not the same as zero.
//! It may have an end. From then on it is as if it had never been written.
//!
//! An add with an idempotency key is answered once: whoever sends it again within
//! the key's lifetime is told what the first was told, and nothing is added.
//! That holds whatever became of the counter meanwhile.
//!
//! As the ledger's, these books are cut into 64 partitions. Each change is handed
//! to a [`Journal`] as it is made, and nothing may be told that rests on a record
//! which is not durable; each answer says which record it rests on.

mod add;
mod entry;
mod id;
mod record;
mod replay;
mod shard;
mod table;
mod usage;

use ahash::RandomState;
use alloc::vec::Vec;
use prost::Message;

pub use add::{Add, AddError, Added, Bounds, TTL_SECS_MAX, TooMuch, Ttl};
pub use id::{
    CounterId, IDEMPOTENCY_KEY_BYTES_MAX, IdempotencyKey, NAME_BYTES_MAX, NAMESPACE_BYTES_MAX,
    NameError, TENANT_BYTES_MAX,
};
pub use usage::TenantLimits;

use self::{
    record::{Answer, Record, State},
    shard::Shard,
    usage::{Load, Usage},
};
use crate::{
    journal::Journal,
    key::PARTITIONS,
    time::{Micros, Timestamp},
};

/// All counters of one region. Every `now` is the region's clock.
pub struct Counters {
    shards: Vec<Shard>,
    usage: Usage,
    /// How long it is remembered what an idempotency key was told.
    lifetime: Micros,
    /// The time of the latest record that was read back.
    latest: Timestamp,
}

/// A counter that was written, and has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The sum.
    pub value: i64,
    /// When it ends; none: never.
    pub expires: Option<Timestamp>,
}

/// What a counter is, and what that rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The counter; none if it was never written.
    pub counter: Option<Counter>,
    /// The position of the record that must be durable before anyone is told.
    pub rests_on: u64,
}

impl Counters {
    /// None at all. The seeds are random, and secret: they keep a client from
    /// inventing names that make the tables slow. `lifetime` is that of an
    /// idempotency key.
    pub fn new(hash_seeds: [u64; 4], limits: TenantLimits, lifetime: Micros) -> Self {
        let [a, b, c, d] = hash_seeds;
        let hash = RandomState::with_seeds(a, b, c, d);
        Self {
            shards: (0..PARTITIONS).map(|_| Shard::new(&hash)).collect(),
            usage: Usage::new(limits, &hash),
            lifetime,
            latest: Timestamp::default(),
        }
    }

    /// Adds, and puts on record what that came to.
    ///
    /// # Errors
    /// See [`AddError`]; then nothing has changed.
    pub fn add(
        &mut self,
        add: &Add,
        now: Timestamp,
        journal: &mut dyn Journal,
    ) -> Result<Added, AddError> {
        let told = add.idempotency.as_ref().map(|key| add.id.with(key));
        if let Some(name) = &told
            && let Some(answer) = self.told_before(add, name, now)
        {
            return answer;
        }
        let seen = self.read(&add.id, now);
        let value = seen.counter.map_or(0, |counter| counter.value);
        let sum = value.checked_add(add.delta).ok_or(AddError::Overflow {
            value,
            delta: add.delta,
        })?;
        let applied = add.bounds.hold(sum);
        let mut added = Added {
            value: if applied { sum } else { value },
            applied,
            replayed: false,
            rests_on: seen.rests_on,
        };
        if !applied && told.is_none() {
            return Ok(added);
        }
        self.room_for(&add.id, applied, told.as_deref())?;
        let mut record = Record::of(&add.id, now);
        if applied {
            let end = seen.counter.and_then(|counter| counter.expires);
            let expires = add.ttl.map(|ttl| ttl.from(now)).or(end);
            record.state = Some(State::new(sum, expires));
        }
        record.told = told.map(|name| Answer {
            name: name.into_string(),
            fingerprint: add.fingerprint(),
            value: added.value,
            applied,
            until_us: now.after(self.lifetime).as_micros(),
        });
        added.rests_on = self.put_on_record(&add.id, record, journal);
        Ok(added)
    }

    /// What an earlier add of the same key was told.
    fn told_before(
        &self,
        add: &Add,
        name: &str,
        now: Timestamp,
    ) -> Option<Result<Added, AddError>> {
        let told = self.shard(&add.id)?.told(name, now)?;
        if told.fingerprint != add.fingerprint() {
            return Some(Err(AddError::KeyReused));
        }
        Some(Ok(Added {
            value: told.value,
            applied: told.applied,
            replayed: true,
            rests_on: told.at,
        }))
    }

    fn room_for(&self, id: &CounterId, writes: bool, told: Option<&str>) -> Result<(), AddError> {
        let mut load = told.map_or_else(Load::default, Load::told);
        let is_new = self.shard(id).is_none_or(|shard| !shard.keeps(id));
        if writes && is_new {
            load = load.and(Load::counter(id.as_text()));
        }
        self.usage.room(id.tenant(), load)
    }

    /// Makes a counter zero, written if it was not. Its end stays. Returns what it
    /// is, and the position of the record that says so.
    ///
    /// # Errors
    /// It is new, and the tenant may keep no more.
    pub fn reset(
        &mut self,
        id: &CounterId,
        now: Timestamp,
        journal: &mut dyn Journal,
    ) -> Result<(Counter, u64), AddError> {
        self.room_for(id, true, None)?;
        let expires = self.read(id, now).counter.and_then(|known| known.expires);
        let mut record = Record::of(id, now);
        record.state = Some(State::new(0, expires));
        let rests_on = self.put_on_record(id, record, journal);
        Ok((Counter { value: 0, expires }, rests_on))
    }

    /// Makes a counter one that was never written. Returns what it was.
    pub fn delete(&mut self, id: &CounterId, now: Timestamp, journal: &mut dyn Journal) -> Seen {
        let seen = self.read(id, now);
        if seen.counter.is_none() {
            return seen;
        }
        let mut record = Record::of(id, now);
        record.deleted = true;
        let rests_on = self.put_on_record(id, record, journal);
        Seen { rests_on, ..seen }
    }

    /// What a counter is.
    pub fn read(&self, id: &CounterId, now: Timestamp) -> Seen {
        self.shard(id).map_or(
            Seen {
                counter: None,
                rests_on: 0,
            },
            |shard| shard.read(id, now),
        )
    }

    fn put_on_record(&mut self, id: &CounterId, record: Record, journal: &mut dyn Journal) -> u64 {
        let position = journal.append(&record.encode_to_vec());
        if let Some(shard) = self.shards.get_mut(id.partition() as usize) {
            shard.contains = position;
            shard.take(id, record, position, &mut self.usage);
        }
        position
    }

    fn shard(&self, id: &CounterId) -> Option<&Shard> {
        self.shards.get(id.partition() as usize)
    }

    /// Forgets a few of the counters and idempotency keys of one partition that
    /// have ended. To be called for each partition in turn, and again for the same
    /// one if it returns that there is more.
    pub fn sweep(&mut self, partition: u32, now: Timestamp) -> bool {
        let shard = self.shards.get_mut(partition as usize);
        shard.is_some_and(|shard| !shard.sweep(now, &mut self.usage))
    }

    /// Counters held.
    pub fn len(&self) -> usize {
        self.shards.iter().map(Shard::counters).sum()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Idempotency keys held.
    pub fn idempotency_keys(&self) -> usize {
        self.shards.iter().map(Shard::keys_told).sum()
    }
}
