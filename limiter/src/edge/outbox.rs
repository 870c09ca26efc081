//! Batches on their way: each counts once, however often it has to be sent.
//!
//! A partition has one batch under way at a time. It is sent again, unchanged,
//! until the region acknowledges it; what is counted meanwhile goes into the
//! next.

use alloc::vec::Vec;

use super::table::Slot;
use crate::{
    key::{CounterKey, PARTITIONS, RuleId},
    time::{Micros, Timestamp},
    window::WindowIndex,
    wire::{Ack, Batch, CountGroup, ack::Status},
};

/// How long to wait for an acknowledgement before sending again.
const RESEND_AFTER: Micros = Micros::from_millis(900);

/// Hits of one key and window, on their way into a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delta {
    pub(super) slot: Slot,
    pub(super) key: CounterKey,
    pub(super) rule: RuleId,
    pub(super) window: WindowIndex,
    pub(super) hits: u64,
    pub(super) leaked: u64,
    /// Hits given back that were in an earlier batch, or are in this one.
    pub(super) returned: u64,
}

/// A batch that is not acknowledged yet.
#[derive(Debug)]
struct UnderWay {
    batch: Batch,
    deltas: Vec<Delta>,
    /// When it was last sent; none if it has to be sent (again).
    sent: Option<Timestamp>,
    message: u64,
}

/// One partition's stream of batches.
#[derive(Debug)]
struct Stream {
    epoch: u64,
    sequence: u64,
    under_way: Option<UnderWay>,
}

/// What became of a batch.
pub(super) enum Fate {
    /// It is in the books: these hits are accounted for.
    Counted(Vec<Delta>),
    /// Nothing new: it is not the one under way, or goes out once more.
    Same,
}

pub(super) struct Outbox {
    streams: Vec<Stream>,
}

impl Outbox {
    pub(super) fn new(epoch: u64) -> Self {
        let stream = |_| Stream {
            epoch,
            sequence: 0,
            under_way: None,
        };
        Self {
            streams: (0..PARTITIONS).map(stream).collect(),
        }
    }

    /// Whether a partition can take a new batch.
    pub(super) fn is_free(&self, partition: u32) -> bool {
        self.stream(partition)
            .is_some_and(|stream| stream.under_way.is_none())
    }

    /// Makes a batch of deltas that all belong to `partition`, which is free.
    pub(super) fn put(&mut self, partition: u32, deltas: Vec<Delta>) {
        let Some(stream) = self.streams.get_mut(partition as usize) else {
            return;
        };
        stream.sequence = stream.sequence.saturating_add(1);
        let batch = Batch {
            partition,
            epoch: stream.epoch,
            sequence: stream.sequence,
            groups: groups(&deltas),
        };
        stream.under_way = Some(UnderWay {
            batch,
            deltas,
            sent: None,
            message: 0,
        });
    }

    /// All batches that are due to be sent with message `message`, and the
    /// deltas in them.
    pub(super) fn due(
        &mut self,
        message: u64,
        now: Timestamp,
        mut sink: impl FnMut(&Batch, &[Delta]),
    ) {
        for way in self
            .streams
            .iter_mut()
            .filter_map(|stream| stream.under_way.as_mut())
        {
            if way.sent.is_none_or(|sent| now.since(sent) >= RESEND_AFTER) {
                way.sent = Some(now);
                way.message = message;
                sink(&way.batch, &way.deltas);
            }
        }
    }

    /// Takes in that `message` was not answered: what was in it is due again.
    pub(super) fn unanswered(&mut self, message: u64) {
        for way in self
            .streams
            .iter_mut()
            .filter_map(|stream| stream.under_way.as_mut())
        {
            if way.message == message {
                way.sent = None;
            }
        }
    }

    /// Takes in what the region says of a batch. `life` becomes the epoch of the
    /// partition's next life if this one has ended.
    pub(super) fn acknowledge(&mut self, ack: &Ack, life: u64) -> Fate {
        let Some(stream) = self.streams.get_mut(ack.partition as usize) else {
            return Fate::Same;
        };
        let Some(way) = stream.under_way.as_mut() else {
            return Fate::Same;
        };
        if way.batch.sequence != ack.sequence {
            return Fate::Same;
        }
        match ack.status() {
            Status::Counted | Status::Duplicate => {
                let deltas = stream.under_way.take().map(|way| way.deltas);
                return Fate::Counted(deltas.unwrap_or_default());
            }
            Status::Gap | Status::StaleEpoch => {
                stream.epoch = life.max(stream.epoch.saturating_add(1));
                stream.sequence = 1;
                way.batch.epoch = stream.epoch;
                way.batch.sequence = 1;
                way.sent = None;
            }
            Status::Future => {
                for group in &mut way.batch.groups {
                    group.window = 0;
                }
                way.sent = None;
            }
            Status::Unknown => {}
        }
        Fate::Same
    }

    fn stream(&self, partition: u32) -> Option<&Stream> {
        self.streams.get(partition as usize)
    }
}

/// Columns of deltas, one group for each rule and window. They come sorted.
fn groups(deltas: &[Delta]) -> Vec<CountGroup> {
    deltas
        .chunk_by(|one, other| (one.rule, one.window) == (other.rule, other.window))
        .filter_map(|same| {
            let first = same.first()?;
            let keys: Vec<u8> = same.iter().flat_map(|delta| delta.key.to_bytes()).collect();
            Some(CountGroup {
                rule: first.rule.0,
                window: first.window.0,
                keys: keys.into(),
                hits: same.iter().map(|delta| delta.hits).collect(),
                leaked: sparse(same, |delta| delta.leaked),
                returned: sparse(same, |delta| delta.returned),
            })
        })
        .collect()
}

/// A column that is left out if all of it is zero.
fn sparse(deltas: &[Delta], value: impl Fn(&Delta) -> u64) -> Vec<u64> {
    let values = deltas.iter().map(&value);
    match deltas.iter().any(|delta| value(delta) > 0) {
        true => values.collect(),
        false => Vec::new(),
    }
}
