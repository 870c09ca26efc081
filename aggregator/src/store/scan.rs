//! Reading one segment: hands over its records, and tells a torn tail from
//! damage.

use std::path::Path;

use super::error::OpenError;
use super::fields::{BadOpening, Fields};
use super::position::Position;
use super::segment::{BATCH_MAGIC, Batch, HEADER_BYTES, SegmentId, read_batch, read_head};

/// Takes a record with its position.
pub(super) type Sink<'a> = dyn FnMut(Position, &[u8]) -> Result<(), OpenError> + 'a;

/// Where a segment ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The position the next record will have.
    pub(super) next: Position,
    /// How many bytes are whole batches, the header included.
    pub(super) whole_bytes: u64,
    /// How many bytes after them are a torn tail.
    pub(super) torn_bytes: u64,
}

/// A segment in memory, with what is needed to judge it.
pub(super) struct Segment<'a> {
    pub(super) path: &'a Path,
    pub(super) bytes: &'a [u8],
    pub(super) id: SegmentId,
    /// Whether there is none after it: only then may its tail be torn.
    pub(super) last: bool,
}

impl Segment<'_> {
    /// Hands over every record, in order.
    pub(super) fn read(&self, sink: &mut Sink<'_>) -> Result<End, OpenError> {
        self.check_header()?;
        let mut next = self.id.first;
        let mut offset = HEADER_BYTES;
        loop {
            let rest = self.bytes.get(offset..).unwrap_or_default();
            let at = offset as u64;
            if rest.is_empty() {
                return Ok(self.end(next, offset));
            }
            match read_batch(self.id, at, rest) {
                Ok(batch) => {
                    self.check_batch(at, next, &batch)?;
                    next = self.hand_over(at, &batch, sink)?;
                    offset += super::segment::HEAD_BYTES + batch.records.len();
                }
                Err(_) if self.last && !self.was_synced(offset, next) => {
                    return Ok(self.end(next, offset));
                }
                Err(bad) => {
                    let expected = format!("a batch that begins with record {next}");
                    return Err(OpenError::damaged(self.path, at, expected, bad.what()));
                }
            }
        }
    }

    fn check_header(&self) -> Result<(), OpenError> {
        let header = self.bytes.get(..HEADER_BYTES).unwrap_or(self.bytes);
        let damaged = |found: String| {
            let expected = format!("the header of the segment of record {}", self.id.first);
            Err(OpenError::damaged(self.path, 0, expected, found))
        };
        match SegmentId::parse(header) {
            Ok(id) if id == self.id => Ok(()),
            Ok(id) if id.store != self.id.store => {
                damaged("a segment of another data directory".to_owned())
            }
            Ok(id) => damaged(format!("the header of the segment of record {}", id.first)),
            Err(BadOpening::Version(found)) => Err(OpenError::format(self.path, found)),
            Err(BadOpening::Magic) => damaged("bytes that are not a segment's".to_owned()),
            Err(BadOpening::Checksum) => damaged("a header whose checksum is wrong".to_owned()),
        }
    }

    fn check_batch(&self, at: u64, next: Position, batch: &Batch<'_>) -> Result<(), OpenError> {
        if batch.head.first == next {
            return Ok(());
        }
        let expected = format!("a batch that begins with record {next}");
        let found = format!("one that begins with record {}", batch.head.first);
        Err(OpenError::damaged(self.path, at, expected, found))
    }

    fn hand_over(
        &self,
        at: u64,
        batch: &Batch<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<Position, OpenError> {
        let mut fields = Fields::new(batch.records);
        let mut position = batch.head.first;
        for _ in 0..batch.head.count {
            let record = fields.u32().and_then(|len| fields.bytes(len));
            let Some(record) = record else {
                return Err(self.miscounted(at, batch));
            };
            sink(position, record)?;
            position = position.next();
        }
        if fields.is_empty() {
            Ok(position)
        } else {
            Err(self.miscounted(at, batch))
        }
    }

    fn miscounted(&self, at: u64, batch: &Batch<'_>) -> OpenError {
        let expected = format!("{} records in the batch", batch.head.count);
        OpenError::damaged(self.path, at, expected, "another number of them")
    }

    /// Whether a batch after the bad one at `offset` says that record `next`,
    /// which should be there, had been synced.
    fn was_synced(&self, offset: usize, next: Position) -> bool {
        let tail = self.bytes.get(offset..).unwrap_or_default();
        let places = tail.windows(BATCH_MAGIC.len()).enumerate().skip(1);
        places
            .filter(|(_, bytes)| *bytes == BATCH_MAGIC)
            .any(|(distance, _)| {
                let rest = tail.get(distance..).unwrap_or_default();
                let at = (offset + distance) as u64;
                read_head(self.id, at, rest).is_ok_and(|(head, _, _)| head.synced >= next)
            })
    }

    fn end(&self, next: Position, offset: usize) -> End {
        End {
            next,
            whole_bytes: offset as u64,
            torn_bytes: self.bytes.len().saturating_sub(offset) as u64,
        }
    }
}
