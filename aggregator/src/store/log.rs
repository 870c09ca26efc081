//! The open log: takes records and commits them.
//!
//! Its snapshots are in `log_snapshots.rs`.

use core::mem;
use std::sync::Arc;

use super::error::{AppendError, CommitError};
use super::open::Home;
use super::options::Durability;
use super::pending::{Active, Finished, Gathered, Pending};
use super::position::Position;
use super::recover::Recovered;
use super::segment::HEAD_BYTES;

/// What a record's length takes in front of it.
const LENGTH_BYTES: u64 = 4;

/// An open data directory.
///
/// `append` only touches memory. A commit is either [`commit`](Self::commit),
/// or [`start_commit`](Self::start_commit), [`Pending::run`] on a thread that
/// may wait, and [`finish_commit`](Self::finish_commit); meanwhile `append`
/// goes on. Snapshots are split in the same way.
pub struct Log {
    pub(super) home: Arc<Home>,
    file: Place,
    gathered: Gathered,
    /// An emptied buffer, to be used again.
    spare: Vec<u8>,
    /// Bytes in the commit under way.
    in_flight_bytes: u64,
    next: Position,
    written: Position,
    pub(super) synced: Position,
    /// First positions of all segments, the active one last.
    pub(super) segments: Vec<Position>,
    pub(super) rotate: bool,
    pub(super) under_way: Arc<()>,
    pub(super) log_bytes: u64,
    pub(super) snapshot_log_bytes: u64,
}

/// Where the active segment is.
enum Place {
    Here(Active),
    InFlight,
    /// Given up after a failure that only a restart can judge.
    Failed,
}

impl Log {
    pub(super) fn resume(
        home: Home,
        active: Active,
        segments: Vec<Position>,
        recovered: &Recovered,
    ) -> Self {
        let last = recovered.report.last;
        let mut log = Self {
            home: Arc::new(home),
            file: Place::Here(active),
            gathered: Gathered::default(),
            spare: Vec::new(),
            in_flight_bytes: 0,
            next: last.next(),
            written: last,
            synced: last,
            segments,
            rotate: false,
            under_way: Arc::new(()),
            log_bytes: recovered.log_bytes,
            snapshot_log_bytes: 0,
        };
        log.begin_gathering();
        log
    }

    /// Takes a record, given in parts that are put together. It is in memory
    /// until it is committed.
    ///
    /// # Errors
    /// The record is too large, too much waits already, or the log has failed.
    /// The record then has no position.
    pub fn append(&mut self, record: &[&[u8]]) -> Result<Position, AppendError> {
        if matches!(self.file, Place::Failed) {
            return Err(AppendError::Failed);
        }
        let bytes = record.iter().map(|part| part.len() as u64).sum::<u64>();
        let (len, waiting) = self.admit(bytes)?;
        if waiting > 0
            && waiting + LENGTH_BYTES + bytes > u64::from(self.home.options.buffer_bytes_max)
        {
            return Err(AppendError::BufferFull {
                waiting,
                max: self.home.options.buffer_bytes_max,
            });
        }
        self.gathered.bytes.extend_from_slice(&len.to_le_bytes());
        for part in record {
            self.gathered.bytes.extend_from_slice(part);
        }
        self.gathered.count = self.gathered.count.saturating_add(1);
        let position = self.next;
        self.next = position.next();
        Ok(position)
    }

    fn admit(&self, bytes: u64) -> Result<(u32, u64), AppendError> {
        let max = self.home.options.record_bytes_max;
        match u32::try_from(bytes) {
            Ok(len) if len <= max => Ok((len, self.waiting_bytes())),
            _ => Err(AppendError::RecordTooLarge { bytes, max }),
        }
    }

    /// Makes everything appended so far as durable as asked, and waits for it.
    /// Returns the last position that is.
    ///
    /// # Errors
    /// See [`CommitError`]. After one that
    /// [is transient](CommitError::is_transient) the records wait for the next
    /// commit; after another, the log takes no more.
    pub fn commit(&mut self, durability: Durability) -> Result<Position, CommitError> {
        match self.start_commit(durability)? {
            Some(pending) => self.finish_commit(pending.run()),
            None => Ok(self.durable(durability)),
        }
    }

    /// Takes what was appended so far out of the log, to be run elsewhere.
    /// `None` if all of it already is as durable as asked.
    ///
    /// # Errors
    /// The commit before is not finished, or the log has failed.
    pub fn start_commit(&mut self, durability: Durability) -> Result<Option<Pending>, CommitError> {
        let done = self.gathered.count == 0 && self.durable(durability) == self.written;
        if done && matches!(self.file, Place::Here(_)) {
            return Ok(None);
        }
        self.take(durability, false).map(Some)
    }

    fn take(&mut self, durability: Durability, closing: bool) -> Result<Pending, CommitError> {
        let active = match mem::replace(&mut self.file, Place::InFlight) {
            Place::Here(active) => active,
            Place::InFlight => return Err(CommitError::InFlight),
            Place::Failed => {
                self.file = Place::Failed;
                return Err(CommitError::Failed);
            }
        };
        self.in_flight_bytes = self.waiting_bytes();
        let gathered = mem::take(&mut self.gathered);
        self.begin_gathering();
        Ok(Pending {
            home: Arc::clone(&self.home),
            active,
            gathered,
            durability,
            rotate: self.rotate,
            closing,
            written: self.written,
            synced: self.synced,
            rotated: None,
        })
    }

    /// Takes back a commit that has run. Returns the last position that is now
    /// as durable as was asked.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn finish_commit(&mut self, finished: Finished) -> Result<Position, CommitError> {
        let Finished { pending, outcome } = finished;
        self.in_flight_bytes = 0;
        if let Some(first) = pending.rotated {
            self.segments.push(first);
        }
        if let Err(error) = outcome {
            if error.is_transient() {
                self.synced = pending.synced;
                self.file = Place::Here(pending.active);
                self.put_back(pending.gathered);
            } else {
                self.file = Place::Failed;
            }
            return Err(error);
        }
        self.file = Place::Here(pending.active);
        self.written = pending.written;
        self.synced = pending.synced;
        if pending.gathered.count > 0 {
            self.rotate &= !pending.rotate;
            self.log_bytes += pending.gathered.bytes.len() as u64;
        }
        self.spare = pending.gathered.bytes;
        Ok(self.durable(pending.durability))
    }

    /// Puts records that could not be written before those that came since.
    fn put_back(&mut self, mut earlier: Gathered) {
        let since = self.gathered.bytes.get(HEAD_BYTES..).unwrap_or_default();
        earlier.bytes.extend_from_slice(since);
        earlier.count = earlier.count.saturating_add(self.gathered.count);
        self.gathered = earlier;
    }

    fn begin_gathering(&mut self) {
        let mut bytes = mem::take(&mut self.spare);
        bytes.clear();
        bytes.resize(HEAD_BYTES, 0);
        self.gathered = Gathered {
            bytes,
            first: self.next,
            count: 0,
        };
    }

    /// Commits everything and says in the log that it ended well, so that
    /// later damage to the last batch is not taken for a torn tail.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn close(mut self) -> Result<Position, CommitError> {
        self.commit(Durability::Fsynced)?;
        let pending = self.take(Durability::Fsynced, true)?;
        self.finish_commit(pending.run())
    }

    /// The last record appended.
    pub fn last(&self) -> Position {
        self.next.previous()
    }

    /// The last record that is this durable.
    pub fn durable(&self, durability: Durability) -> Position {
        match durability {
            Durability::Written => self.written,
            Durability::Fsynced => self.synced,
        }
    }

    /// Whether a commit is under way.
    pub fn in_flight(&self) -> bool {
        matches!(self.file, Place::InFlight)
    }

    /// Bytes that wait for a commit, in flight included.
    pub fn waiting_bytes(&self) -> u64 {
        let gathered = self.gathered.bytes.len().saturating_sub(HEAD_BYTES);
        self.in_flight_bytes + gathered as u64
    }

    /// Bytes of log that a start would read after the last snapshot: when to
    /// take the next one.
    pub fn bytes_since_snapshot(&self) -> u64 {
        self.log_bytes.saturating_sub(self.snapshot_log_bytes)
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }
}
