//! The books: the ledger, the counters and the rule book, in one log.
//!
//! A record's first byte says whose it is, and so does a snapshot chunk's. The
//! first chunk of a snapshot's first partition is the time: what a restart's clock
//! may not begin before.

use limiter::{
    counter::{Counters, TenantLimits},
    journal::Journal,
    ledger::Ledger,
    time::{Micros, Timestamp},
};

use super::{
    book_log::BookLog,
    frames::{Frames, frame},
    rule_book::RuleBook,
};
use crate::store::{AppendError, Position, Replay, ReplayError};

/// Whose a record or a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Owner {
    Ledger = 1,
    Counters = 2,
    Clock = 3,
    RuleBook = 4,
}

/// Why a record or a chunk is nobody's.
#[derive(Debug, thiserror::Error)]
#[error("{what} begins with {found:?}, which names none of the books")]
struct Nobodys {
    what: &'static str,
    found: Option<u8>,
}

/// Everything that the region keeps.
pub(super) struct Books {
    pub(super) ledger: Ledger,
    pub(super) counters: Counters,
    pub(super) rule_book: RuleBook,
    frames: Frames,
    /// The time that a snapshot told.
    latest: Timestamp,
}

impl Books {
    /// Empty ones. The seeds are random.
    pub(super) fn new(hash_seeds: [u64; 4], limits: TenantLimits, lifetime: Micros) -> Self {
        Self {
            ledger: Ledger::new(hash_seeds),
            counters: Counters::new(hash_seeds, limits, lifetime),
            rule_book: RuleBook::default(),
            frames: Frames::default(),
            latest: Timestamp::default(),
        }
    }

    /// The latest time that what was read back tells of.
    pub(super) fn latest(&self) -> Timestamp {
        let recorded = self.ledger.latest().max(self.counters.latest());
        self.latest.max(recorded)
    }

    /// One partition, framed, as [`Replay::shard`] takes it.
    pub(super) fn snapshot(&self, partition: u32, now: Timestamp) -> Vec<Vec<u8>> {
        let mut chunks = Vec::new();
        if partition == 0 {
            chunks.push(frame(Owner::Clock as u8, &now.as_micros().to_le_bytes()));
            self.rule_book.snapshot(&mut |chunk| {
                chunks.push(frame(Owner::RuleBook as u8, chunk));
            });
        }
        self.ledger.snapshot(partition, &mut |chunk| {
            chunks.push(frame(Owner::Ledger as u8, chunk));
        });
        self.counters.snapshot(partition, &mut |chunk| {
            chunks.push(frame(Owner::Counters as u8, chunk));
        });
        chunks
    }

    fn restore(&mut self, shard: u32, contains: u64, chunk: &[u8]) -> Result<(), ReplayError> {
        match owned("a snapshot chunk", chunk)? {
            (Owner::Ledger, chunk) => self.ledger.restore(shard, contains, chunk)?,
            (Owner::Counters, chunk) => self.counters.restore(shard, contains, chunk)?,
            (Owner::RuleBook, chunk) => self.rule_book.restore(chunk)?,
            (Owner::Clock, chunk) => {
                let micros = chunk.first_chunk::<8>().copied().unwrap_or_default();
                self.latest = Timestamp::from_micros(u64::from_le_bytes(micros));
            }
        }
        Ok(())
    }
}

impl Replay for Books {
    fn shard(&mut self, shard: u32, contains: Position, bytes: &[u8]) -> Result<(), ReplayError> {
        let contains = contains.number();
        // Whoever has nothing in a partition has taken in its records all the same.
        self.ledger.restore(shard, contains, &[])?;
        self.counters.restore(shard, contains, &[])?;
        if shard == 0 {
            self.rule_book.contain(contains);
        }
        self.frames.take(bytes);
        while let Some(chunk) = self.frames.next() {
            self.restore(shard, contains, &chunk)?;
        }
        Ok(())
    }

    fn record(&mut self, position: Position, record: &[u8]) -> Result<(), ReplayError> {
        let position = position.number();
        match owned("a record", record)? {
            (Owner::Ledger, record) => self.ledger.replay(position, record)?,
            (Owner::Counters, record) => self.counters.replay(position, record)?,
            (Owner::RuleBook, record) => self.rule_book.replay(position, record)?,
            (Owner::Clock, _) => return Err(nobodys("a record", record)),
        }
        Ok(())
    }
}

fn owned<'a>(what: &'static str, bytes: &'a [u8]) -> Result<(Owner, &'a [u8]), ReplayError> {
    let (owner, rest) = bytes.split_first().ok_or_else(|| nobodys(what, bytes))?;
    let known = [
        Owner::Ledger,
        Owner::Counters,
        Owner::Clock,
        Owner::RuleBook,
    ];
    let owner = known.into_iter().find(|known| *known as u8 == *owner);
    Ok((owner.ok_or_else(|| nobodys(what, bytes))?, rest))
}

fn nobodys(what: &'static str, bytes: &[u8]) -> ReplayError {
    let found = bytes.first().copied();
    Box::new(Nobodys { what, found })
}

/// Takes the records of one owner to the log.
pub(super) struct Records<'a> {
    log: &'a mut BookLog,
    owner: Owner,
    /// Why a record was not taken. The books are then ahead of their log, and
    /// nothing they say may leave any more.
    lost: Option<AppendError>,
}

impl Journal for Records<'_> {
    fn append(&mut self, record: &[u8]) -> u64 {
        match self.log.append(&[&[self.owner as u8], record]) {
            Ok(position) => position.number(),
            Err(error) => {
                self.lost.get_or_insert(error);
                self.log.last().number()
            }
        }
    }
}

/// Changes books, with the records going to the log. Once one was not taken, the
/// books are not to be believed any more.
pub(super) fn journaled<T>(
    log: &mut BookLog,
    owner: Owner,
    change: impl FnOnce(&mut Records<'_>) -> T,
) -> Result<T, AppendError> {
    let lost = None;
    let mut records = Records { log, owner, lost };
    let result = change(&mut records);
    match records.lost {
        None => Ok(result),
        Some(error) => Err(error),
    }
}
