//! From the log to the ledger, at start; and from the ledger to the log, after.

use limiter::ledger::{Journal, Ledger};

use crate::store::{AppendError, Log, Position, Replay, ReplayError};

/// Fills an empty ledger with what the log holds.
pub(super) struct Recovery<'a> {
    ledger: &'a mut Ledger,
    frames: Frames,
}

impl<'a> Recovery<'a> {
    pub(super) fn of(ledger: &'a mut Ledger) -> Self {
        let frames = Frames::default();
        Self { ledger, frames }
    }
}

impl Replay for Recovery<'_> {
    fn shard(&mut self, shard: u32, contains: Position, bytes: &[u8]) -> Result<(), ReplayError> {
        if bytes.is_empty() {
            return Ok(self.ledger.restore(shard, contains.number(), &[])?);
        }
        self.frames.take(bytes);
        while let Some(chunk) = self.frames.next() {
            self.ledger.restore(shard, contains.number(), &chunk)?;
        }
        Ok(())
    }

    fn record(&mut self, position: Position, record: &[u8]) -> Result<(), ReplayError> {
        Ok(self.ledger.replay(position.number(), record)?)
    }
}

/// A ledger's chunk with its length before it: the log may cut what it is
/// given, and a chunk has to come back whole.
pub(super) fn frame(chunk: &[u8]) -> Vec<u8> {
    let mut framed = (chunk.len() as u64).to_le_bytes().to_vec();
    framed.extend_from_slice(chunk);
    framed
}

/// Puts cut chunks together again.
#[derive(Default)]
struct Frames(Vec<u8>);

impl Frames {
    fn take(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next chunk that is whole.
    fn next(&mut self) -> Option<Vec<u8>> {
        let (len, rest) = self.0.split_first_chunk::<8>()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let chunk = rest.get(..len)?.to_vec();
        self.0.drain(..len.saturating_add(8));
        Some(chunk)
    }
}

/// Takes the ledger's records to the log.
pub(super) struct Records<'a> {
    pub(super) log: &'a mut Log,
    /// Why a record was not taken. The ledger is then ahead of its log, and
    /// nothing it says may leave any more.
    pub(super) lost: Option<AppendError>,
}

impl Journal for Records<'_> {
    fn append(&mut self, record: &[u8]) -> u64 {
        match self.log.append(&[record]) {
            Ok(position) => position.number(),
            Err(error) => {
                self.lost.get_or_insert(error);
                self.log.last().number()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_back_whole_however_they_were_cut() {
        let written = [frame(b"first"), frame(b""), frame(b"the third")].concat();
        for size in 1..written.len() {
            let mut frames = Frames::default();
            let mut read = Vec::new();
            for part in written.chunks(size) {
                frames.take(part);
                read.extend(core::iter::from_fn(|| frames.next()));
            }
            assert_eq!(
                read,
                [b"first".to_vec(), b"".to_vec(), b"the third".to_vec()]
            );
        }
    }
}
