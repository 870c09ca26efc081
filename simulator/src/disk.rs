//! What of a region survives it: its log, and its snapshots.

use std::collections::VecDeque;

use limiter::{
    key::PARTITIONS,
    ledger::{Journal, Ledger, ReplayError},
    time::{Micros, Timestamp},
};

/// Seeds of the ledger's tables. Nothing depends on them.
const HASH_SEEDS: [u64; 4] = [1, 2, 3, 4];

/// An empty ledger.
pub(crate) fn ledger() -> Ledger {
    Ledger::new(HASH_SEEDS)
}

/// Records become durable a while after they are written.
pub(crate) struct Disk {
    commit: Micros,
    now: Timestamp,
    /// Whether anything will ever be read back; else only the times are kept.
    is_read: bool,
    /// The position of the first record still there.
    first: u64,
    log: VecDeque<Record>,
    /// Bytes written in all.
    pub(crate) written: u64,
    last_durable_at: Timestamp,
    /// The snapshot that is whole on disk.
    snapshot: Option<Snapshot>,
    /// The one that is not yet.
    writing: Option<Snapshot>,
}

struct Record {
    bytes: Vec<u8>,
    durable_at: Timestamp,
}

/// All partitions at one instant.
struct Snapshot {
    durable_at: Timestamp,
    partitions: Vec<(u64, Vec<Vec<u8>>)>,
}

impl Disk {
    /// An empty one, that takes so long to commit.
    pub(crate) const fn new(commit: Micros) -> Self {
        Self {
            commit,
            now: Timestamp::from_micros(0),
            is_read: true,
            first: 1,
            log: VecDeque::new(),
            written: 0,
            last_durable_at: Timestamp::from_micros(0),
            snapshot: None,
            writing: None,
        }
    }

    /// Nobody will read it: records are dropped, and memory with them.
    pub(crate) const fn unread(mut self) -> Self {
        self.is_read = false;
        self
    }

    /// What is appended from now on is appended at `now`.
    pub(crate) const fn at(&mut self, now: Timestamp) -> &mut Self {
        self.now = now;
        self
    }

    /// When all that was written is durable; never before `now`.
    pub(crate) fn all_durable_at(&self, now: Timestamp) -> Timestamp {
        self.last_durable_at.max(now)
    }

    /// When what is written at `now` is durable.
    const fn durable_at(&self, now: Timestamp) -> Timestamp {
        now.after(self.commit)
    }

    /// Writes a snapshot. It counts once all that it contains is durable.
    pub(crate) fn write_snapshot(&mut self, ledger: &Ledger, now: Timestamp) {
        if !self.is_read {
            return;
        }
        self.settle(now);
        let partitions = (0..PARTITIONS).map(|partition| {
            let mut chunks = Vec::new();
            let contains = ledger.snapshot(partition, &mut |chunk| chunks.push(chunk.to_vec()));
            (contains, chunks)
        });
        self.writing = Some(Snapshot {
            durable_at: self.durable_at(now),
            partitions: partitions.collect(),
        });
    }

    /// The power goes: what is not durable is gone.
    pub(crate) fn crash(&mut self, now: Timestamp) {
        self.settle(now);
        self.writing = None;
        while self.log.back().is_some_and(|last| last.durable_at > now) {
            self.log.pop_back();
        }
        self.last_durable_at = self.last_durable_at.min(now);
    }

    /// Brings a ledger back from what is there.
    pub(crate) fn rebuild(&self) -> Result<Ledger, ReplayError> {
        let mut ledger = ledger();
        let partitions = self
            .snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.partitions);
        for (partition, (contains, chunks)) in (0..).zip(partitions) {
            for chunk in chunks {
                ledger.restore(partition, *contains, chunk)?;
            }
        }
        for (position, record) in (self.first..).zip(&self.log) {
            ledger.replay(position, &record.bytes)?;
        }
        Ok(ledger)
    }

    /// Takes note of a snapshot that has become durable, and drops the part of
    /// the log that it contains.
    fn settle(&mut self, now: Timestamp) {
        let Some(written) = self.writing.take_if(|writing| writing.durable_at <= now) else {
            return;
        };
        let contained = written
            .partitions
            .iter()
            .map(|(contains, _)| *contains)
            .min();
        while contained.is_some_and(|contained| self.first <= contained)
            && self.log.pop_front().is_some()
        {
            self.first += 1;
        }
        self.snapshot = Some(written);
    }
}

impl Journal for Disk {
    fn append(&mut self, record: &[u8]) -> u64 {
        let durable_at = self.durable_at(self.now);
        self.last_durable_at = self.last_durable_at.max(durable_at);
        self.written += record.len() as u64;
        if self.is_read {
            let bytes = record.to_vec();
            self.log.push_back(Record { bytes, durable_at });
        } else {
            self.first += 1;
        }
        self.first + self.log.len() as u64 - 1
    }
}
