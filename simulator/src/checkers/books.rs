//! The books: every acknowledged hit is counted, and counted once; and so is every
//! hit that was given back.
//!
//! Kept from what was sent and what was acknowledged, batch by batch, and
//! compared with the ledger's own sum after every message it takes in. Of a batch
//! that is durable and that a later one has followed it is enough to know so.

use std::collections::{BTreeMap, HashMap, VecDeque};

use limiter::{
    key::RuleId,
    ledger::Ledger,
    rule::Scope,
    time::Timestamp,
    wire::{Batch, ack::Status},
};

use crate::region::Synced;

/// Hits by rule.
type Hits = BTreeMap<RuleId, Sum>;

/// Hits counted, and hits given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    hits: u64,
    returned: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.returned += other.returned;
    }

    fn remove(&mut self, other: Self) {
        self.hits -= other.hits;
        self.returned -= other.returned;
    }

    /// What there is more here than there.
    const fn beyond(self, other: Self) -> u64 {
        let hits = self.hits.saturating_sub(other.hits);
        hits + self.returned.saturating_sub(other.returned)
    }
}

/// Source, epoch, partition: whose batches come one after the other.
type Name = (u64, u64, u32);

/// What the ledger has said it counted.
#[derive(Default)]
pub(crate) struct Books {
    streams: HashMap<Name, Stream>,
    counted: Hits,
}

/// The batches of one source in one partition and life.
#[derive(Default)]
struct Stream {
    /// All up to this one are acknowledged and durable, and forgotten.
    done: u64,
    /// Those after it that were sent.
    recent: VecDeque<Entry>,
}

struct Entry {
    sequence: u64,
    hits: Vec<(RuleId, Sum)>,
    /// When the acknowledgement was durable; none if there was none.
    durable_at: Option<Timestamp>,
}

/// What the books and the ledger do not agree on, in hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Acknowledged, and missing in the ledger.
    pub(crate) lost: u64,
    /// In the ledger more often than acknowledged.
    pub(crate) double: u64,
}

impl Books {
    /// Enters a message's batches as acknowledged, and compares.
    pub(crate) fn synced(
        &mut self,
        synced: &Synced,
        ledger: &Ledger,
        now: Timestamp,
    ) -> Result<(), String> {
        let request = &synced.request;
        for batch in &request.batches {
            let name = (request.source, batch.epoch, batch.partition);
            let mut acks = synced.reply.message.acks.iter();
            let (partition, sequence) = (batch.partition, batch.sequence);
            let ack = acks.find(|ack| (ack.partition, ack.sequence) == (partition, sequence));
            let status = ack.map_or(Status::Unknown, |ack| ack.status());
            let stream = self.streams.entry(name).or_default();
            stream.forget_before(batch.sequence, now);
            if let Some(hits) = stream.enter(name, batch, status, synced.leaves_at)? {
                add(&mut self.counted, &hits);
            }
        }
        if request.batches.is_empty() {
            return Ok(());
        }
        self.compare(ledger)
    }

    /// Forgets what was acknowledged and not durable when the region died: no
    /// such acknowledgement has left it.
    pub(crate) fn crashed(&mut self, now: Timestamp) {
        let streams = self.streams.values_mut();
        for entry in streams.flat_map(|stream| &mut stream.recent) {
            if entry.durable_at.take_if(|at| *at > now).is_some() {
                for (rule, hits) in &entry.hits {
                    self.counted.entry(*rule).or_default().remove(*hits);
                }
            }
        }
    }

    /// Whether the ledger has counted what it said.
    pub(crate) fn compare(&self, ledger: &Ledger) -> Result<(), String> {
        match self.difference(ledger) {
            Difference { lost: 0, double: 0 } => Ok(()),
            Difference { lost, double } => Err(format!(
                "the ledger misses {lost} acknowledged hits and has {double} more than once"
            )),
        }
    }

    /// How the ledger's sums differ from what it acknowledged.
    pub(crate) fn difference(&self, ledger: &Ledger) -> Difference {
        Difference::between(&self.counted, &booked(ledger))
    }

    /// Hits acknowledged in all, and hits given back.
    pub(crate) fn acknowledged(&self) -> (u64, u64) {
        let mut sum = Sum::default();
        self.counted.values().for_each(|one| sum.add(*one));
        (sum.hits, sum.returned)
    }
}

impl Stream {
    /// Forgets the hits of batches that are done when a later one comes.
    fn forget_before(&mut self, sequence: u64, now: Timestamp) {
        let done = self.done + 1;
        let is_done = |entry: &mut Entry| {
            let durable = entry.durable_at.is_some_and(|at| at <= now);
            durable && entry.sequence == done && entry.sequence < sequence
        };
        if let Some(entry) = self.recent.pop_front_if(is_done) {
            self.done = entry.sequence;
        }
    }

    /// Takes note of what became of a batch. Returns its hits if they count now.
    fn enter(
        &mut self,
        name: Name,
        batch: &Batch,
        status: Status,
        at: Timestamp,
    ) -> Result<Option<Vec<(RuleId, Sum)>>, String> {
        let sequence = batch.sequence;
        let batch_name = || format!("batch {sequence} of {name:?}");
        if sequence <= self.done {
            return match status {
                Status::Counted => Err(format!("{} was counted twice", batch_name())),
                _ => Ok(None),
            };
        }
        let hits = hits_of(batch);
        let entry = self.entry(sequence, &hits);
        if entry.hits != hits {
            return Err(format!("{} was sent again with other hits", batch_name()));
        }
        let again = entry.durable_at.is_some();
        match status {
            Status::Counted if again => Err(format!("{} was counted twice", batch_name())),
            Status::Duplicate if !again => Err(format!(
                "{} was called a duplicate and never counted",
                batch_name()
            )),
            Status::Counted => {
                entry.durable_at = Some(at);
                Ok(Some(hits))
            }
            _ => Ok(None),
        }
    }

    /// The entry of a batch, made if there is none.
    fn entry(&mut self, sequence: u64, hits: &[(RuleId, Sum)]) -> &mut Entry {
        let place = self.recent.iter().position(|one| one.sequence == sequence);
        let place = place.unwrap_or_else(|| {
            self.recent.push_back(Entry {
                sequence,
                hits: hits.to_vec(),
                durable_at: None,
            });
            self.recent.len() - 1
        });
        &mut self.recent[place]
    }
}

/// What a ledger's books say.
fn booked(ledger: &Ledger) -> Hits {
    let mut booked = Hits::new();
    for (rule, hits) in ledger.hits_by_rule() {
        booked.entry(rule).or_default().hits = hits;
    }
    for (rule, returned) in ledger.returned_by_rule() {
        booked.entry(rule).or_default().returned = returned;
    }
    booked
}

/// What regions have counted of global rules beside the books above.
pub(crate) fn difference_between(regions: &[&Ledger], above: &Ledger) -> Difference {
    let rules = above.rules();
    let global = |rule: &RuleId| {
        let rule = rules.by_id(*rule).and_then(|place| rules.rule(place));
        rule.is_none_or(|rule| rule.scope == Scope::Global)
    };
    let mut below = Hits::new();
    for (rule, sum) in regions.iter().flat_map(|ledger| booked(ledger)) {
        if global(&rule) {
            below.entry(rule).or_default().add(sum);
        }
    }
    Difference::between(&below, &booked(above))
}

impl Difference {
    fn between(acknowledged: &Hits, booked: &Hits) -> Self {
        let missing = |of: &Hits, from: &Hits| {
            let less = |(rule, sum): (&RuleId, &Sum)| {
                sum.beyond(from.get(rule).copied().unwrap_or_default())
            };
            of.iter().map(less).sum()
        };
        Self {
            lost: missing(acknowledged, booked),
            double: missing(booked, acknowledged),
        }
    }

    /// What the books of another region differ by, too.
    pub(crate) const fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.double += other.double;
    }
}

fn hits_of(batch: &Batch) -> Vec<(RuleId, Sum)> {
    let mut hits: Vec<(RuleId, Sum)> = Vec::with_capacity(batch.groups.len());
    for group in &batch.groups {
        let rule = RuleId(group.rule);
        let sum = Sum {
            hits: group.hits.iter().sum(),
            returned: group.returned.iter().sum(),
        };
        match hits.iter_mut().find(|(other, _)| *other == rule) {
            Some((_, all)) => all.add(sum),
            None => hits.push((rule, sum)),
        }
    }
    hits
}

fn add(sum: &mut Hits, hits: &[(RuleId, Sum)]) {
    for (rule, hits) in hits {
        sum.entry(*rule).or_default().add(*hits);
    }
}
