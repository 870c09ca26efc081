//! What the caller does with what is read back, and what it is told of it.

use super::error::Damage;
use super::position::Position;

/// Why the caller did not accept a shard or a record.
pub type ReplayError = Box<dyn core::error::Error + Send + Sync>;

/// Takes what a data directory holds: first every shard of the snapshot, then
/// the records after the smallest position that a shard contains.
///
/// A record may already be in some shards: the caller compares its position
/// with what each shard contains.
pub trait Replay {
    /// A part of a shard, or all of it.
    ///
    /// The parts of one shard come one after the other, as they were written
    /// or cut smaller, and with the same `contains`.
    fn shard(&mut self, shard: u32, contains: Position, bytes: &[u8]) -> Result<(), ReplayError>;

    /// A record. Positions come in order and without a gap.
    fn record(&mut self, position: Position, record: &[u8]) -> Result<(), ReplayError>;
}

/// What was found in a data directory.
#[derive(Debug, Default)]
pub struct Report {
    /// Whether the directory was empty before.
    pub created: bool,
    /// How many records were handed over.
    pub records: u64,
    /// How many bytes of records were handed over.
    pub record_bytes: u64,
    /// The last record that is there.
    pub last: Position,
    /// How many bytes at the end of the last segment were not a whole batch:
    /// a commit that a crash cut short and nobody was told of.
    pub torn_bytes: u64,
    /// How many segments were read.
    pub segments: u64,
    /// How many shards the snapshot held; 0 without a snapshot.
    pub shards: u64,
    /// When the snapshot was begun, in milliseconds since the Unix epoch, as
    /// the caller said then.
    pub snapshot_taken_at_ms: Option<u64>,
    /// Newer snapshots that were not whole. An older one, or the log alone,
    /// held everything they did.
    pub damaged_snapshots: Vec<Damage>,
}

/// Takes everything and keeps nothing, for verifying.
pub(super) struct Discard;

impl Replay for Discard {
    fn shard(&mut self, _: u32, _: Position, _: &[u8]) -> Result<(), ReplayError> {
        Ok(())
    }

    fn record(&mut self, _: Position, _: &[u8]) -> Result<(), ReplayError> {
        Ok(())
    }
}
