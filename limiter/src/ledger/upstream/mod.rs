//! A region as a source of the aggregator above it: what it is lent of global limits,
//! and how what it counts gets there.
//!
//! The protocol is the one that sources speak. What differs: what a region has
//! acknowledged it also has to pass on, so what is on its way is part of the books
//! (`stream.rs`); and it does not spend a lease but lends it on (`room.rs`).

mod forward;
mod reply;
mod room;
mod send;
mod stake;
mod stream;

use alloc::{string::String, vec::Vec};

use ahash::RandomState;
use hashbrown::HashMap;

use super::{
    Journal, Ledger,
    kind::Kinds,
    record::{Forwarding, Record, Step, StepKind},
};
use crate::{
    borrow::{Crowded, Link},
    key::{CounterKey, HashSeed, KeyHasher, PARTITIONS, RuleId},
    time::{Micros, Timestamp},
    wire::{Batch, CountGroup, Outgoing},
};
pub(super) use forward::Demand;
pub(super) use room::Room;
pub(super) use stake::Stake;
pub(super) use stream::{Slice, Stream, StreamEntry};

/// All stakes of a partition.
pub(super) type Stakes = HashMap<CounterKey, Stake, RandomState>;

/// A region, as the aggregator above knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// What it is called. No two regions under one aggregator have the same name: it is
    /// by that that they are told apart.
    pub name: String,
    /// Which of its lives: greater in every later one. Microseconds since the Unix epoch
    /// at its start will do.
    pub epoch: u64,
}

/// Something to be carried to the aggregator above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The body of one `POST /v1/sync`.
    pub message: Outgoing,
    /// Whether it tells of hits. It may then not leave before every record that the
    /// journal was handed is durable.
    pub has_batches: bool,
}

/// How a region stands with the aggregator above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamStats {
    /// Whether it is taken to be away.
    pub away: bool,
    /// How long ago it last answered.
    pub last_reply_ago: Option<Micros>,
    /// How long an answer takes.
    pub round_trip: Micros,
    /// Regions that it knows of, this one among them; none while that is not known.
    pub regions: Option<u32>,
    /// Keys and windows whose hits are not in its books yet, as far as is known.
    pub waiting: usize,
    /// Keys of which something is held.
    pub stakes: usize,
    /// Hits that were counted here while it could not be asked, since this ledger was
    /// made.
    pub alone_hits: u64,
    /// Messages that told that this region's numbers were out of order there: another
    /// region goes by the same name, or one of the two has lost its books.
    pub out_of_order: u64,
}

/// The way to the aggregator above.
pub(super) struct Upstream {
    region: Option<Region>,
    source: u64,
    message: u64,
    link: Link,
    crowded: Crowded,
    /// Its clock in the latest reply.
    heard_us: u64,
    /// Regions that it knows of.
    regions: u32,
    next_flush: Timestamp,
    /// Partitions that the present flush has still to tell of, a bit each.
    telling: u64,
    /// Whether something has to be said even if there is nothing to tell.
    greeting: bool,
    /// When the first partition is due that cannot wait for the flush.
    hasty: Option<Timestamp>,
    asking: Vec<CounterKey>,
    asked: Timestamp,
    alone_hits: u64,
    out_of_order: u64,
}

impl Region {
    /// The source that it is.
    fn source(&self) -> u64 {
        let mut hasher = KeyHasher::new(HashSeed::default());
        hasher.value(b"region");
        hasher.value(self.name.as_bytes());
        hasher.finish_rule().0.max(1)
    }
}

impl Upstream {
    pub(super) fn new(hash: RandomState) -> Self {
        Self {
            region: None,
            source: 0,
            message: 0,
            link: Link::default(),
            crowded: Crowded::new(hash),
            heard_us: 0,
            regions: u32::MAX,
            next_flush: Timestamp::default(),
            telling: 0,
            greeting: false,
            hasty: None,
            asking: Vec::new(),
            asked: Timestamp::default(),
            alone_hits: 0,
            out_of_order: 0,
        }
    }

    /// Whether there is an aggregator above this one.
    pub(super) const fn is_set(&self) -> bool {
        self.region.is_some()
    }

    /// Regions that share global limits: one if there is nobody above, the greatest
    /// number there is while that is not known.
    pub(super) const fn regions(&self) -> u32 {
        if self.is_set() { self.regions } else { 1 }
    }

    /// The same, as far as it is known.
    const fn regions_at_least(&self) -> u32 {
        match self.regions {
            0 | u32::MAX => 1,
            regions => regions,
        }
    }

    /// Whether nobody above can be asked. Before the first answer nobody can.
    pub(super) fn is_away(&self, now: Timestamp) -> bool {
        self.link.last_reply.is_none() || self.link.is_away(now)
    }

    /// What becomes of hits that are counted now.
    pub(super) fn forwarding(&self, now: Timestamp) -> Forwarding {
        match (self.is_set(), self.is_away(now)) {
            (false, _) => Forwarding::Kept,
            (true, false) => Forwarding::Forwarded,
            (true, true) => Forwarding::Alone,
        }
    }

    /// Takes note of what was counted while nobody above could be asked.
    pub(super) fn note_counted(&mut self, batch: &Batch, forwarding: Forwarding, kinds: &Kinds) {
        if forwarding != Forwarding::Alone {
            return;
        }
        let global = |group: &&CountGroup| kinds.is_global(RuleId(group.rule));
        let hits = batch.groups.iter().filter(global);
        let hits = hits.flat_map(|group| &group.hits);
        self.alone_hits = hits.fold(self.alone_hits, |sum, hits| sum.saturating_add(*hits));
    }

    /// How long an answer takes.
    pub(super) const fn round_trip(&self) -> Micros {
        self.link.rtt
    }

    /// Has a key claimed at once.
    pub(super) fn ask(&mut self, key: CounterKey, stake: &mut Stake) {
        if !stake.asking {
            stake.asking = true;
            self.asking.push(key);
        }
    }

    /// Has a partition told of no later than this.
    pub(super) fn hurry(&mut self, due: Timestamp) {
        self.hasty = Some(self.hasty.map_or(due, |hasty| hasty.min(due)));
    }
}

impl Ledger {
    /// Makes this ledger a region of an aggregator above it. Its global rules hold over
    /// all regions from now on; the others stay its own. To be called once, after the
    /// books were read back.
    pub fn join(&mut self, region: Region, now: Timestamp, journal: &mut dyn Journal) {
        for partition in 0..PARTITIONS {
            let epoch = region.epoch;
            self.step(partition, StepKind::Life, epoch, now, journal);
        }
        self.upstream.source = region.source();
        self.upstream.message = region.epoch;
        self.upstream.region = Some(region);
    }

    /// Goes by so many regions until the aggregator above says how many there are: what
    /// it said in an earlier life. Who cannot ask then keeps to its part of the limit.
    pub fn expect_regions(&mut self, regions: u32) {
        self.upstream.regions = regions.max(1);
    }

    /// How this region stands with the aggregator above it; none if there is none.
    pub fn upstream_stats(&self, now: Timestamp) -> Option<UpstreamStats> {
        let upstream = &self.upstream;
        upstream.is_set().then(|| UpstreamStats {
            away: upstream.is_away(now),
            last_reply_ago: upstream.link.last_reply.map(|at| now.since(at)),
            round_trip: upstream.link.rtt,
            regions: Some(upstream.regions).filter(|regions| *regions != u32::MAX),
            waiting: self.shards.iter().map(|shard| shard.stream.len()).sum(),
            stakes: self.shards.iter().map(|shard| shard.stakes.len()).sum(),
            alone_hits: upstream.alone_hits,
            out_of_order: upstream.out_of_order,
        })
    }

    /// Takes a step on the way up, and puts it on record.
    fn step(
        &mut self,
        partition: u32,
        kind: StepKind,
        epoch: u64,
        now: Timestamp,
        journal: &mut dyn Journal,
    ) {
        let step = Step {
            partition,
            kind: kind.into(),
            epoch,
        };
        if let Some(shard) = self.shards.get_mut(partition as usize) {
            shard.contains = journal.append(&Record::stepped(step, now).to_bytes());
            shard.step(step);
        }
    }
}
