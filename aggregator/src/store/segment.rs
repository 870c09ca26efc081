//! The format of a log segment, `log-<first position, 20 digits>.seg`.
//!
//! All numbers are little-endian. A segment is a header of 32 bytes
//!
//! | bytes | field |
//! |---|---|
//! | 8 | magic `WEIRLOG\0` |
//! | 4 | format version |
//! | 8 | identity of the data directory |
//! | 8 | position of its first record |
//! | 4 | CRC-32 of the above |
//!
//! and then batches, one for each commit. A batch is a head of 36 bytes
//!
//! | bytes | field |
//! |---|---|
//! | 4 | magic |
//! | 4 | how many records; none in a closing batch |
//! | 4 | bytes of the records |
//! | 8 | position of its first record |
//! | 8 | the last position that was synced when the batch was written |
//! | 4 | CRC-32 of the records |
//! | 4 | CRC-32 of identity, segment, offset in the file, and the above |
//!
//! and its records, each a length of 4 bytes and that many bytes.
//!
//! A batch counts whole or not at all. Its head is tied to its place, so a
//! stale or copied batch is not taken for one, and nobody can forge one inside
//! a record without knowing the directory's identity. The synced position
//! tells a torn tail from damage: if a batch after a bad one says that the bad
//! one had been synced, it was whole once.
//!
//! What this cannot tell: damage to the batches of the last sync, after a
//! crash. Nothing in the file says that their sync had come back, so they are
//! cut off like a torn tail, and reported. After a clean end it can: the
//! closing batch says that all before it was synced.

use super::fields::{BadOpening, Fields, checksum, open_header, opening, seal, unseal};
use super::position::Position;

pub(super) const HEADER_BYTES: usize = 32;
pub(super) const HEAD_BYTES: usize = 36;
pub(super) const BATCH_MAGIC: [u8; 4] = [0xB7, b'W', b'B', 1];
const MAGIC: &[u8; 8] = b"WEIRLOG\0";

/// Which segment a batch belongs to: the directory, and the first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentId {
    pub(super) store: u64,
    pub(super) first: Position,
}

impl SegmentId {
    pub(super) fn name(self) -> String {
        format!("log-{:020}.seg", self.first.number())
    }

    pub(super) fn header(self) -> Vec<u8> {
        let mut bytes = opening(MAGIC, self.store);
        bytes.extend_from_slice(&self.first.number().to_le_bytes());
        seal(&[], bytes)
    }

    pub(super) fn parse(header: &[u8]) -> Result<Self, BadOpening> {
        let (store, mut fields) = open_header(MAGIC, header)?;
        let first = fields.u64().ok_or(BadOpening::Checksum)?;
        Ok(Self {
            store,
            first: Position::new(first),
        })
    }

    fn seed(self, offset: u64) -> [u8; 24] {
        let mut seed = [0; 24];
        let parts = [self.store, self.first.number(), offset];
        for (slot, part) in seed.chunks_exact_mut(8).zip(parts) {
            slot.copy_from_slice(&part.to_le_bytes());
        }
        seed
    }
}

/// The head of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) count: u32,
    pub(super) first: Position,
    pub(super) synced: Position,
}

impl Head {
    /// Fills in the head in front of the records that follow it in `batch`.
    pub(super) fn write(self, id: SegmentId, offset: u64, batch: &mut [u8]) {
        let Some((space, records)) = batch.split_at_mut_checked(HEAD_BYTES) else {
            return;
        };
        let mut head = BATCH_MAGIC.to_vec();
        head.extend_from_slice(&self.count.to_le_bytes());
        let bytes = u32::try_from(records.len()).unwrap_or(u32::MAX);
        head.extend_from_slice(&bytes.to_le_bytes());
        head.extend_from_slice(&self.first.number().to_le_bytes());
        head.extend_from_slice(&self.synced.number().to_le_bytes());
        head.extend_from_slice(&checksum(&[records]).to_le_bytes());
        space.copy_from_slice(&seal(&id.seed(offset), head));
    }
}

/// A batch as it was read.
pub(super) struct Batch<'a> {
    pub(super) head: Head,
    pub(super) records: &'a [u8],
}

/// Why the bytes at a place are not a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadBatch {
    ShortHead,
    Head,
    ShortRecords,
    Records,
}

impl BadBatch {
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::ShortHead => "the end of the file within a batch's head",
            Self::Head => "bytes that are not a batch's head",
            Self::ShortRecords => "the end of the file within a batch's records",
            Self::Records => "records whose checksum is wrong",
        }
    }
}

/// A head whose checksum is right, with what follows still unread.
pub(super) fn read_head(
    id: SegmentId,
    offset: u64,
    bytes: &[u8],
) -> Result<(Head, u32, u32), BadBatch> {
    let head = bytes.get(..HEAD_BYTES).ok_or(BadBatch::ShortHead)?;
    if !head.starts_with(&BATCH_MAGIC) {
        return Err(BadBatch::Head);
    }
    let body = unseal(&id.seed(offset), head).ok_or(BadBatch::Head)?;
    let mut fields = Fields::new(body.get(BATCH_MAGIC.len()..).unwrap_or_default());
    let mut read = || {
        let (count, len) = (fields.u32()?, fields.u32()?);
        let (first, synced) = (fields.u64()?, fields.u64()?);
        let head = Head {
            count,
            first: Position::new(first),
            synced: Position::new(synced),
        };
        Some((head, len, fields.u32()?))
    };
    read().ok_or(BadBatch::Head)
}

/// The batch at the front of `bytes`, which begin `offset` bytes into the file.
pub(super) fn read_batch(id: SegmentId, offset: u64, bytes: &[u8]) -> Result<Batch<'_>, BadBatch> {
    let (head, len, sum) = read_head(id, offset, bytes)?;
    let mut rest = Fields::new(bytes.get(HEAD_BYTES..).unwrap_or_default());
    let records = rest.bytes(len).ok_or(BadBatch::ShortRecords)?;
    if checksum(&[records]) != sum {
        return Err(BadBatch::Records);
    }
    Ok(Batch { head, records })
}
