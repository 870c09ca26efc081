//! The format of a snapshot, `snapshot-<position at its begin, 20 digits>.snap`.
//!
//! All numbers are little-endian. A snapshot is a header of 40 bytes
//!
//! | bytes | field |
//! |---|---|
//! | 8 | magic `WEIRSNAP` |
//! | 4 | format version |
//! | 8 | identity of the data directory |
//! | 8 | the last record when it was begun |
//! | 8 | when it was begun, ms since the Unix epoch |
//! | 4 | CRC-32 of the above |
//!
//! then chunks, and one footer. Both have a head of 25 bytes
//!
//! | bytes | chunk | footer |
//! |---|---|---|
//! | 1 | 1 | 2 |
//! | 4 | shard | how many shards |
//! | 8 | the record up to which the shard's content goes | smallest such record |
//! | 4 | bytes of content | 0 |
//! | 4 | CRC-32 of content | low half of the number of chunks |
//! | 4 | CRC-32 of identity, begin, number of the chunk, and the above | the same |
//!
//! and a chunk's head is followed by its content. Nothing follows the footer:
//! a snapshot without one is torn. The chunks of a shard follow one another.

use super::fields::{Fields, seal, unseal};
use super::position::Position;

pub(super) const HEADER_BYTES: usize = 40;
pub(super) const HEAD_BYTES: usize = 25;
/// Longer content is cut, so that a reader needs little memory.
pub(super) const CHUNK_BYTES_MAX: usize = 1 << 20;
pub(super) const MAGIC: &[u8; 8] = b"WEIRSNAP";
const CHUNK: u8 = 1;
const FOOTER: u8 = 2;

/// The file name of the snapshot begun after record `begun`.
pub(super) fn name(begun: Position) -> String {
    format!("snapshot-{:020}.snap", begun.number())
}

/// What a snapshot's heads are tied to.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnapshotId {
    pub(super) store: u64,
    pub(super) begun: Position,
}

/// The head of a chunk, or the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Chunk {
        shard: u32,
        contains: Position,
        len: u32,
        sum: u32,
    },
    Footer {
        shards: u32,
        smallest: Position,
        chunks: u32,
    },
}

impl Head {
    /// The bytes of the head of chunk `number`, the first being 0.
    pub(super) fn encode(self, id: SnapshotId, number: u64) -> Vec<u8> {
        let (kind, count, position, len, sum) = match self {
            Self::Chunk {
                shard,
                contains,
                len,
                sum,
            } => (CHUNK, shard, contains, len, sum),
            Self::Footer {
                shards,
                smallest,
                chunks,
            } => (FOOTER, shards, smallest, 0, chunks),
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&position.number().to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&sum.to_le_bytes());
        seal(&seed(id, number), bytes)
    }

    /// The head in `bytes`, if it is that of chunk `number`.
    pub(super) fn decode(id: SnapshotId, number: u64, bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(unseal(&seed(id, number), bytes)?);
        let (kind, count) = (fields.u8()?, fields.u32()?);
        let position = Position::new(fields.u64()?);
        let (len, sum) = (fields.u32()?, fields.u32()?);
        match kind {
            CHUNK => Some(Self::Chunk {
                shard: count,
                contains: position,
                len,
                sum,
            }),
            FOOTER => Some(Self::Footer {
                shards: count,
                smallest: position,
                chunks: sum,
            }),
            _ => None,
        }
    }
}

fn seed(id: SnapshotId, number: u64) -> Vec<u8> {
    let parts = [id.store, id.begun.number(), number];
    parts.iter().flat_map(|part| part.to_le_bytes()).collect()
}
