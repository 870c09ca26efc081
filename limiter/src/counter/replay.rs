//! Counters written down, and read back from records and snapshots.

use alloc::vec::Vec;

use prost::Message;

use super::{Counters, entry::Told, id::CounterId, record::Record};
use crate::{journal::ReplayError, time::Timestamp};

/// About how large a chunk of a snapshot is.
const CHUNK_BYTES: usize = 1 << 20;

impl Counters {
    /// Applies a record from the log, unless the snapshot of its partition
    /// contains it.
    ///
    /// # Errors
    /// It is no record of counters.
    pub fn replay(&mut self, position: u64, record: &[u8]) -> Result<(), ReplayError> {
        let error = |what| ReplayError { position, what };
        let record = Record::decode(record).map_err(|_| error("it does not decode"))?;
        let id = CounterId::from_text(&record.id).ok_or_else(|| error("it names no counter"))?;
        self.latest = self.latest.max(Timestamp::from_micros(record.at_us));
        let shard = self
            .shards
            .get_mut(id.partition() as usize)
            .ok_or_else(|| error("there is no such partition"))?;
        if position > shard.contains {
            shard.contains = position;
            shard.take(&id, record, position, &mut self.usage);
        }
        Ok(())
    }

    /// Writes one partition, as chunks that [`Self::restore`] takes one by one.
    /// Returns the position of the last record it contains.
    pub fn snapshot(&self, partition: u32, chunk: &mut dyn FnMut(&[u8])) -> u64 {
        let Some(shard) = self.shards.get(partition as usize) else {
            return 0;
        };
        let mut bytes = Vec::new();
        shard.write(|record| {
            // A vector grows as it must: this does not fail.
            let _ = record.encode_length_delimited(&mut bytes);
            if bytes.len() >= CHUNK_BYTES {
                chunk(&bytes);
                bytes.clear();
            }
        });
        if !bytes.is_empty() {
            chunk(&bytes);
        }
        shard.contains
    }

    /// Reads back one chunk of a snapshot.
    ///
    /// # Errors
    /// It is no chunk of counters.
    pub fn restore(
        &mut self,
        partition: u32,
        contains: u64,
        chunk: &[u8],
    ) -> Result<(), ReplayError> {
        let error = |what| ReplayError {
            position: contains,
            what,
        };
        let shard = self
            .shards
            .get_mut(partition as usize)
            .ok_or_else(|| error("there is no such partition"))?;
        shard.contains = contains;
        let records = Record::read_all(chunk);
        let records = records.map_err(|_| error("a snapshot chunk does not decode"))?;
        for record in records {
            match CounterId::from_text(&record.id) {
                Some(id) => shard.take(&id, record, contains, &mut self.usage),
                None => {
                    let told = record.told;
                    let told = told.ok_or_else(|| error("a snapshot entry names no counter"))?;
                    shard.remember(Told::new(told, contains), &mut self.usage);
                }
            }
        }
        Ok(())
    }

    /// The time of the latest record that was read back: the region's clock may
    /// not begin before it.
    pub const fn latest(&self) -> Timestamp {
        self.latest
    }
}
