//! One group's log in the shared store: as [`Log`](crate::store::Log), with the engine
//! in place of files.
//!
//! `append` only touches memory. A commit is [`SharedLog::start_commit`], then
//! [`Pending::run`] on a thread that may wait, then [`SharedLog::finish_commit`]. What
//! was gathered stands in one entry. If it is not known what became of it, the same
//! entry is sent again before any other.

use core::mem;

use super::{
    Append, Claim, EngineError, Link, List,
    entry::{self, HEAD_BYTES},
};
use crate::store::{AppendError, Position, Replay, ReplayError};

/// The longest record, as in a data directory.
const RECORD_BYTES_MAX: u32 = 16 << 20;

/// The most bytes that wait for a commit, in flight included.
const BUFFER_BYTES_MAX: u32 = 64 << 20;

/// The log of a group that this member owns.
pub struct SharedLog {
    pub(super) link: Link,
    gathered: Vec<u8>,
    count: u32,
    next: u64,
    pub(super) committed: u64,
    /// An entry of which it is not known whether it is there.
    unsure: Option<Pending>,
    in_flight_bytes: Option<u64>,
    failed: bool,
    /// Entries that the log has ever had, those included that snapshots replaced.
    pub(super) entries: u64,
    /// Bytes in the store's list.
    pub(super) log_bytes: u64,
    pub(super) snapshots: u64,
}

/// Why a group could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The engine failed.
    #[error("cannot read the shared store")]
    Engine(#[from] EngineError),
    /// The books did not take what is there.
    #[error("what the shared store holds is refused")]
    Replay(#[source] ReplayError),
}

/// A commit that is to be sent.
#[must_use = "the log waits until this has run and was given back"]
pub struct Pending {
    link: Link,
    entry: Vec<u8>,
    after: u64,
    last: u64,
}

/// A commit that has run, for better or worse.
#[must_use = "the log waits until this was given back"]
pub struct Finished {
    pending: Pending,
    outcome: Result<(), EngineError>,
}

impl Pending {
    /// Sends it, and waits for the answer.
    pub fn run(self) -> Finished {
        let append = Append {
            after: self.after,
            last: self.last,
            entry: &self.entry,
        };
        let outcome = self.link.append(append);
        Finished {
            pending: self,
            outcome,
        }
    }
}

impl SharedLog {
    /// Reads a group that was claimed into `books`.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn open(link: Link, claim: &Claim, books: &mut dyn Replay) -> Result<Self, LoadError> {
        let last = claim.last;
        let contains = load_snapshot(&link, books)?;
        let mut log = Self {
            link,
            gathered: vec![0; HEAD_BYTES],
            count: 0,
            next: last.saturating_add(1),
            committed: last,
            unsure: None,
            in_flight_bytes: None,
            failed: false,
            entries: claim.dropped,
            log_bytes: 0,
            snapshots: 0,
        };
        let found = log.load_log(books)?.unwrap_or(contains);
        // A snapshot may contain more than the log after it holds.
        if found.max(contains) < last {
            let expected = last;
            return Err(EngineError::Gap { expected, found }.into());
        }
        Ok(log)
    }

    /// Returns the number of the last record that is there.
    fn load_log(&mut self, books: &mut dyn Replay) -> Result<Option<u64>, LoadError> {
        let mut latest = None;
        let dropped = self.entries;
        loop {
            let page = self
                .link
                .page(List::Log, self.entries.saturating_sub(dropped))?;
            if page.is_empty() {
                return Ok(latest);
            }
            for bytes in page {
                self.entries = self.entries.saturating_add(1);
                self.log_bytes = self.log_bytes.saturating_add(bytes.len() as u64);
                let foreign = || EngineError::Foreign("an entry of the log is cut short".into());
                let (first, records) = entry::records(&bytes).ok_or_else(foreign)?;
                let follows = latest.map_or(first, |latest: u64| latest.saturating_add(1));
                if first != follows {
                    let (expected, found) = (follows, first);
                    return Err(EngineError::Gap { expected, found }.into());
                }
                for (position, record) in (first..).zip(records) {
                    let replayed = books.record(Position::new(position), record);
                    replayed.map_err(LoadError::Replay)?;
                    latest = Some(position);
                }
            }
        }
    }

    /// Takes a record, given in parts that are put together. It is in memory until it is
    /// committed.
    ///
    /// # Errors
    /// The record is too large, too much waits already, or the log has failed.
    pub fn append(&mut self, record: &[&[u8]]) -> Result<Position, AppendError> {
        if self.failed {
            return Err(AppendError::Failed);
        }
        let bytes = record.iter().map(|part| part.len() as u64).sum::<u64>();
        let max = RECORD_BYTES_MAX;
        let length = match u32::try_from(bytes) {
            Ok(length) if length <= max => length,
            _ => return Err(AppendError::RecordTooLarge { bytes, max }),
        };
        let (waiting, max) = (self.waiting_bytes(), BUFFER_BYTES_MAX);
        if waiting > 0 && waiting.saturating_add(bytes) > u64::from(max) {
            return Err(AppendError::BufferFull { waiting, max });
        }
        self.gathered.extend_from_slice(&length.to_le_bytes());
        for part in record {
            self.gathered.extend_from_slice(part);
        }
        self.count = self.count.saturating_add(1);
        let position = self.next;
        self.next = position.saturating_add(1);
        Ok(Position::new(position))
    }

    /// Takes what was appended so far out of the log, to be sent elsewhere. `None` if all
    /// of it is in the store.
    ///
    /// # Errors
    /// The log has failed: another member owns the group, say.
    pub fn start_commit(&mut self) -> Result<Option<Pending>, EngineError> {
        if self.failed || self.in_flight_bytes.is_some() {
            return Err(EngineError::Fenced);
        }
        let pending = match self.unsure.take() {
            Some(pending) => pending,
            None if self.count == 0 => return Ok(None),
            None => self.gather(),
        };
        self.in_flight_bytes = Some(pending.entry.len() as u64);
        Ok(Some(pending))
    }

    fn gather(&mut self) -> Pending {
        let mut entry = mem::replace(&mut self.gathered, vec![0; HEAD_BYTES]);
        let count = mem::take(&mut self.count);
        entry::set_head(&mut entry, self.committed.saturating_add(1), count);
        Pending {
            link: self.link.clone(),
            entry,
            after: self.committed,
            last: self.committed.saturating_add(u64::from(count)),
        }
    }

    /// Takes back a commit that has run.
    ///
    /// # Errors
    /// As the engine said. After a transient one the same is sent again by the next
    /// commit; after another the log takes no more.
    pub fn finish_commit(&mut self, finished: Finished) -> Result<(), EngineError> {
        let Finished { pending, outcome } = finished;
        self.in_flight_bytes = None;
        match outcome {
            Ok(()) => {
                self.committed = pending.last;
                self.entries = self.entries.saturating_add(1);
                let bytes = pending.entry.len() as u64;
                self.log_bytes = self.log_bytes.saturating_add(bytes);
                Ok(())
            }
            Err(error) => {
                if error.is_transient() {
                    self.unsure = Some(pending);
                } else {
                    self.failed = true;
                }
                Err(error)
            }
        }
    }

    /// The last record appended.
    pub fn last(&self) -> Position {
        Position::new(self.next.saturating_sub(1))
    }

    /// The last record that is in the store.
    pub fn durable(&self) -> Position {
        Position::new(self.committed)
    }

    /// Whether a commit is under way.
    pub fn in_flight(&self) -> bool {
        self.in_flight_bytes.is_some()
    }

    /// Bytes that wait for a commit, in flight included.
    pub fn waiting_bytes(&self) -> u64 {
        let unsure = self.unsure.as_ref().map_or(0, |unsure| unsure.entry.len());
        let gathered = self.gathered.len().saturating_sub(HEAD_BYTES);
        let memory = unsure.saturating_add(gathered) as u64;
        self.in_flight_bytes.unwrap_or(0).saturating_add(memory)
    }

    /// Bytes of log that another owner would read after the last snapshot.
    pub const fn log_bytes(&self) -> u64 {
        self.log_bytes
    }
}

/// Returns the last record that the whole snapshot contains; 0 without one.
fn load_snapshot(link: &Link, books: &mut dyn Replay) -> Result<u64, LoadError> {
    let mut read = 0_u64;
    let mut contains_all = 0;
    loop {
        let page = link.page(List::Snapshot, read)?;
        if page.is_empty() {
            return Ok(contains_all);
        }
        for bytes in page {
            read = read.saturating_add(1);
            let foreign = || EngineError::Foreign("a chunk of a snapshot is cut short".into());
            let (partition, contains, chunk) = entry::read_chunk(&bytes).ok_or_else(foreign)?;
            contains_all = contains_all.max(contains.number());
            let taken = books.shard(partition, contains, chunk);
            taken.map_err(LoadError::Replay)?;
        }
    }
}
