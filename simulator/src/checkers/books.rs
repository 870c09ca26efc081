//! The books: every acknowledged hit is counted, and counted once; and so is every
//! hit that was given back.
//!
//! Kept from what was sent and what was acknowledged, batch by batch, and
//! compared with the ledger's own sum after every message it takes in.

use std::collections::{BTreeMap, HashMap};

use limiter::{
    key::RuleId,
    ledger::Ledger,
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

/// Source, epoch, partition, sequence: what a batch is known by.
type Name = (u64, u64, u32, u64);

/// What the ledger has said it counted.
#[derive(Default)]
pub(crate) struct Books {
    batches: HashMap<Name, Entry>,
    counted: Hits,
}

struct Entry {
    hits: Hits,
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
    pub(crate) fn synced(&mut self, synced: &Synced, ledger: &Ledger) -> Result<(), String> {
        let request = &synced.request;
        for batch in &request.batches {
            let name = (request.source, batch.epoch, batch.partition, batch.sequence);
            let mut acks = synced.reply.message.acks.iter();
            let ack = acks.find(|ack| (ack.partition, ack.sequence) == (name.2, name.3));
            let status = ack.map_or(Status::Unknown, |ack| ack.status());
            self.enter(name, batch, status, synced.leaves_at)?;
        }
        self.compare(ledger)
    }

    fn enter(
        &mut self,
        name: Name,
        batch: &Batch,
        status: Status,
        at: Timestamp,
    ) -> Result<(), String> {
        let hits = hits_of(batch);
        let entry = self.batches.entry(name).or_insert_with(|| Entry {
            hits: hits.clone(),
            durable_at: None,
        });
        if entry.hits != hits {
            return Err(format!("batch {name:?} was sent again with other hits"));
        }
        let again = entry.durable_at.is_some();
        let acknowledged = matches!(status, Status::Counted | Status::Duplicate);
        if acknowledged && !again {
            entry.durable_at = Some(at);
            add(&mut self.counted, &hits);
        }
        match status {
            Status::Counted if again => Err(format!("batch {name:?} was counted twice")),
            Status::Duplicate if !again => Err(format!(
                "batch {name:?} was called a duplicate and never counted"
            )),
            _ => Ok(()),
        }
    }

    /// Forgets what was acknowledged and not durable when the region died: no
    /// such acknowledgement has left it.
    pub(crate) fn crashed(&mut self, now: Timestamp) {
        for entry in self.batches.values_mut() {
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
        let mut booked = Hits::new();
        for (rule, hits) in ledger.hits_by_rule() {
            booked.entry(rule).or_default().hits = hits;
        }
        for (rule, returned) in ledger.returned_by_rule() {
            booked.entry(rule).or_default().returned = returned;
        }
        let missing = |of: &Hits, from: &Hits| {
            let less = |(rule, sum): (&RuleId, &Sum)| {
                sum.beyond(from.get(rule).copied().unwrap_or_default())
            };
            of.iter().map(less).sum()
        };
        Difference {
            lost: missing(&self.counted, &booked),
            double: missing(&booked, &self.counted),
        }
    }

    /// Hits acknowledged in all, and hits given back.
    pub(crate) fn acknowledged(&self) -> (u64, u64) {
        let mut sum = Sum::default();
        self.counted.values().for_each(|one| sum.add(*one));
        (sum.hits, sum.returned)
    }
}

fn hits_of(batch: &Batch) -> Hits {
    let mut hits = Hits::new();
    for group in &batch.groups {
        hits.entry(RuleId(group.rule)).or_default().add(Sum {
            hits: group.hits.iter().sum(),
            returned: group.returned.iter().sum(),
        });
    }
    hits
}

fn add(sum: &mut Hits, hits: &Hits) {
    for (rule, hits) in hits {
        sum.entry(*rule).or_default().add(*hits);
    }
}
