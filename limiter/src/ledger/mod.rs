//! The region half: the authoritative counts, and what is lent on them.

mod check;
mod claims;
mod crowd;
mod fair;
mod kind;
mod lend;
mod loan;
mod loans;
mod record;
mod regional;
mod shard;
mod slots;
mod snapshot;
mod sources;
mod state;
mod stats;
mod sums;
mod told;
mod upstream;

use alloc::{sync::Arc, vec::Vec};

use ahash::RandomState;
use hashbrown::{HashMap, HashSet};
use prost::Message;

pub use crate::journal::{Journal, ReplayError};
use crate::{
    key::{CounterKey, PARTITIONS, RuleId},
    ruleset::RuleSet,
    time::Timestamp,
    wire::{self, Ack, Batch, SyncReply, SyncRequest, ack::Status},
};
use crowd::Crowd;
use kind::Kinds;
use record::Record;
use shard::Shard;
use sources::{SOURCE_MEMORY, Sources, Way};
use upstream::Upstream;
pub use upstream::{Region, Report, UpstreamStats};

/// One region's books. Every `now` is the region's clock.
///
/// Each change is handed to a [`Journal`] as a record as it is made; a reply
/// must not leave before every record handed over until then is durable.
/// Replaying the records into an empty ledger brings back the same books. What
/// is lent is not on record: it expires by itself.
pub struct Ledger {
    rules: Arc<RuleSet>,
    kinds: Kinds,
    shards: Vec<Shard>,
    sources: Sources,
    leaked: HashMap<RuleId, u64, RandomState>,
    crowd: Crowd,
    /// Rules that sources have claimed keys of, so that they may admit unasked.
    claimed: HashSet<RuleId, RandomState>,
    upstream: Upstream,
    /// The time of the latest record that was read back.
    latest: Timestamp,
}

/// Why a message changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} {index}, group {group}: {what}")]
pub struct SyncError {
    /// `batch` or `claim`.
    pub part: &'static str,
    /// Its place in the message.
    pub index: usize,
    /// The group's place in it.
    pub group: usize,
    /// What is wrong, and what would be right.
    pub what: &'static str,
}

/// What became of keys that there was no room for, since this ledger was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crush {
    /// Counts of less than half their limit that made room for others.
    pub evicted_keys: u64,
    /// Hits that were counted for their rule and not for their key.
    pub untracked_hits: u64,
    /// Answers that lent what requests were waiting for, and kept no note of it.
    pub unrecorded_loans: u64,
}

/// What the books say of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Left of the limit, in millionths of a hit; negative when overspent.
    pub room_micro: i64,
    /// Lent and not accounted for, in millionths of a hit.
    pub lent_micro: u64,
}

impl Ledger {
    /// Empty books. The seeds are random, and secret: they keep a client from
    /// inventing keys that make the tables slow.
    pub fn new(hash_seeds: [u64; 4]) -> Self {
        let [a, b, c, d] = hash_seeds;
        let hash = RandomState::with_seeds(a, b, c, d);
        Self {
            rules: Arc::new(RuleSet::empty()),
            kinds: Kinds::new(&hash),
            shards: (0..PARTITIONS).map(|n| Shard::new(n, &hash)).collect(),
            sources: Sources::new(hash.clone()),
            leaked: HashMap::with_hasher(hash.clone()),
            crowd: Crowd::default(),
            claimed: HashSet::with_hasher(hash.clone()),
            upstream: Upstream::new(hash),
            latest: Timestamp::default(),
        }
    }

    /// Holds counts of no more keys than about this, and loans on no more, from now
    /// on; those that are held stay until they are spent. Unless this is said there
    /// is no bound. See [`Self::crush`] for what became of those beyond it.
    pub fn set_keys_max(&mut self, keys_max: u64) {
        let each = keys_max.div_ceil(u64::from(PARTITIONS)).max(1);
        let each = usize::try_from(each).unwrap_or(usize::MAX);
        for shard in &mut self.shards {
            shard.set_keys_max(each);
        }
    }

    /// The rules in force.
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Puts rules in force, and on record. Counts whose rule keeps its name,
    /// key, window and algorithm go on. What was lent still counts as spent: its
    /// source gives it back with its next word, as soon as it has the rules.
    pub fn set_rules(&mut self, rules: Arc<RuleSet>, now: Timestamp, journal: &mut dyn Journal) {
        let record = Record::ruled(wire::RuleSet::from(&*rules), now);
        let position = journal.append(&record.to_bytes());
        self.contain_all(position);
        self.enforce(rules);
    }

    /// Counts a source's message and answers it, or refuses it whole.
    pub fn sync(
        &mut self,
        mut request: SyncRequest,
        now: Timestamp,
        journal: &mut dyn Journal,
    ) -> Result<SyncReply, SyncError> {
        claims::validate(&request)?;
        let mut reply = SyncReply {
            message: request.message,
            sent_at_us: request.sent_at_us,
            now_us: now.as_micros(),
            rules_revision: self.rules.revision,
            ..SyncReply::default()
        };
        let empty = self.is_empty();
        self.sources
            .hear(request.source, Way::of(&request), empty, now);
        for batch in core::mem::take(&mut request.batches) {
            reply
                .acks
                .push(self.count(request.source, batch, now, journal));
        }
        reply.sources = self.sources.expected(now);
        reply.regions = self.upstream.regions();
        if request.rules_revision == self.rules.revision {
            reply.leases = self.lend(&request, now);
        } else {
            let rules = wire::RuleSet::for_one_who_has(&self.rules, &request.lists);
            reply.rules = Some(rules);
        }
        let heard = Timestamp::from_micros(request.heard_us);
        let (crowded, more) = self.crowd.since(heard);
        reply.crowded = crowded.into();
        reply.crowded_more = more;
        Ok(reply)
    }

    fn count(
        &mut self,
        source: u64,
        batch: Batch,
        now: Timestamp,
        journal: &mut dyn Journal,
    ) -> Ack {
        let Some(shard) = self.shards.get_mut(batch.partition as usize) else {
            return Ack::default();
        };
        let ack = shard.judge(source, &batch, &self.kinds, now);
        if ack.status() == Status::Counted {
            let forwarding = self.upstream.forwarding(now);
            let record = Record::counted(source, batch, forwarding, now);
            shard.contains = journal.append(&record.to_bytes());
            if let Some(batch) = &record.batch {
                shard.count(source, batch, forwarding, &self.kinds, now);
                self.upstream.note_counted(batch, forwarding, &self.kinds);
                note_leaks(&mut self.leaked, batch);
            }
        }
        ack
    }

    /// Forgets what no longer matters in one partition: spent counts, loans that
    /// ran out, sources long silent. To be called for each partition in turn, and
    /// again for the same one if it returns that there is more: a full partition
    /// is swept in steps, so that nobody waits long for one.
    pub fn sweep(&mut self, partition: u32, now: Timestamp) -> bool {
        let shard = self.shards.get_mut(partition as usize);
        let more = shard.is_some_and(|shard| !shard.sweep(&self.kinds, now));
        self.sources.sweep(now);
        self.crowd.forget_before(now.before(SOURCE_MEMORY));
        more
    }

    /// Writes one partition, as chunks that [`Self::restore`] takes one by one.
    /// Returns the position of the last record it contains.
    pub fn snapshot(&self, partition: u32, chunk: &mut dyn FnMut(&[u8])) -> u64 {
        let Some(shard) = self.shards.get(partition as usize) else {
            return 0;
        };
        let rules = (partition == 0).then(|| wire::RuleSet::from(&*self.rules));
        snapshot::write(shard, &self.kinds, rules, chunk);
        shard.contains
    }

    /// Reads back one chunk of a snapshot.
    pub fn restore(
        &mut self,
        partition: u32,
        contains: u64,
        chunk: &[u8],
    ) -> Result<(), ReplayError> {
        let error = |what| ReplayError {
            position: contains,
            what,
        };
        let shard = self
            .shards
            .get_mut(partition as usize)
            .ok_or_else(|| error("there is no such partition"))?;
        shard.contains = contains;
        let rules = snapshot::read(chunk, shard, &mut self.kinds).map_err(error)?;
        rules.map_or(Ok(()), |rules| self.replay_rules(rules).map_err(error))
    }

    /// Applies a record from the log, unless the snapshot of its partition
    /// contains it.
    pub fn replay(&mut self, position: u64, record: &[u8]) -> Result<(), ReplayError> {
        let error = |what| ReplayError { position, what };
        let record = Record::decode(record).map_err(|_| error("it does not decode"))?;
        self.latest = self.latest.max(record.at());
        if let Some(batch) = &record.batch {
            let shard = self
                .shards
                .get_mut(batch.partition as usize)
                .ok_or_else(|| error("there is no such partition"))?;
            if position > shard.contains {
                let forwarding = record.forwarding();
                shard.count(record.source, batch, forwarding, &self.kinds, record.at());
                shard.contains = position;
            }
        }
        if let Some(step) = record.step {
            let shard = self
                .shards
                .get_mut(step.partition as usize)
                .ok_or_else(|| error("there is no such partition"))?;
            if position > shard.contains {
                shard.step(step);
                shard.contains = position;
            }
        }
        match record.rules {
            Some(rules) => self.replay_rules(rules).map_err(error),
            None => Ok(()),
        }
    }

    /// The time of the latest record that was read back: the region's clock may
    /// not begin before it.
    pub const fn latest(&self) -> Timestamp {
        self.latest
    }

    fn replay_rules(&mut self, rules: wire::RuleSet) -> Result<(), &'static str> {
        let rules = RuleSet::try_from(rules).map_err(|_| "the rules in it are refused")?;
        if rules.revision > self.rules.revision {
            self.enforce(Arc::new(rules));
        }
        Ok(())
    }

    fn enforce(&mut self, rules: Arc<RuleSet>) {
        self.kinds.enforce(&rules);
        self.rules = rules;
    }

    fn contain_all(&mut self, position: u64) {
        for shard in &mut self.shards {
            shard.contains = position;
        }
    }

    /// Whether nothing has ever been counted.
    fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.books.is_empty())
    }

    /// What the books say of a key of the rule at `rule`; none if there is no
    /// such rule.
    pub fn audit(&self, rule: usize, key: CounterKey, now: Timestamp) -> Option<Audit> {
        let quota = self.rules.rule(rule)?.quota;
        let shard = self.shards.get(key.partition() as usize)?;
        Some(Audit {
            room_micro: shard.count_of(key).room_micro(&quota, now),
            lent_micro: shard.loans.lent(key, now),
        })
    }
}

fn note_leaks(leaked: &mut HashMap<RuleId, u64, RandomState>, batch: &Batch) {
    for group in &batch.groups {
        let sum = group
            .leaked
            .iter()
            .fold(0_u64, |sum, hits| sum.saturating_add(*hits));
        if sum > 0 {
            let total = leaked.entry(RuleId(group.rule)).or_insert(0);
            *total = total.saturating_add(sum);
        }
    }
}
