//! Snapshots of the open log: when one may begin, and when it may get its name.

use std::sync::Arc;

use super::error::SnapshotError;
use super::log::Log;
use super::open::replaced;
use super::options::Durability;
use super::publish::{Publication, Published};
use super::snapshot::SnapshotId;
use super::snapshot_write::{SealedSnapshot, SnapshotWriter, State, Unnamed};

impl Log {
    /// Begins a snapshot at `taken_at_ms`, in milliseconds since the Unix
    /// epoch. Does not touch the disk.
    ///
    /// The next commit begins a segment, so that the log before the snapshot
    /// can be removed after it.
    ///
    /// # Errors
    /// Another one is under way.
    pub fn begin_snapshot(&mut self, taken_at_ms: u64) -> Result<SnapshotWriter, SnapshotError> {
        if Arc::strong_count(&self.under_way) > 1 {
            return Err(SnapshotError::UnderWay);
        }
        self.rotate = true;
        Ok(SnapshotWriter {
            file: Unnamed {
                directory: self.home.directory.clone(),
                id: SnapshotId {
                    store: self.home.store,
                    begun: self.last(),
                },
                keep: false,
            },
            sync_bytes: self.home.options.snapshot_sync_bytes,
            taken_at_ms,
            log_bytes: self.log_bytes,
            under_way: Arc::clone(&self.under_way),
            log_begins: self.segments.first().copied().unwrap_or_default(),
            state: State::begun(self.last()),
        })
    }

    /// Checks that the log is synced up to all that the snapshot contains, and
    /// gives the publication to be run elsewhere.
    ///
    /// # Errors
    /// The log is behind. The snapshot comes back, to be tried again after a
    /// commit with [`Durability::Fsynced`] up to what it
    /// [contains](SealedSnapshot::contains).
    pub fn publish(&self, sealed: SealedSnapshot) -> Result<Publication, SealedSnapshot> {
        if sealed.largest > self.synced {
            return Err(sealed);
        }
        Ok(Publication {
            home: Arc::clone(&self.home),
            replaces: replaced(&self.segments, sealed.smallest),
            sealed,
        })
    }

    /// Takes note of a snapshot that was published.
    pub fn finish_publication(&mut self, published: &Published) {
        self.segments
            .retain(|first| !published.removed.contains(first));
        self.snapshot_log_bytes = published.log_bytes;
    }

    /// Seals, publishes and takes note, committing first if need be; waits for
    /// the disk.
    ///
    /// # Errors
    /// See [`SnapshotError`]; the log goes on unless its commit failed.
    pub fn finish_snapshot(&mut self, writer: SnapshotWriter) -> Result<Published, SnapshotError> {
        let sealed = writer.seal()?;
        if sealed.largest > self.synced {
            self.commit(Durability::Fsynced)?;
        }
        let publication = self.publish(sealed);
        let publication = publication.map_err(|sealed| SnapshotError::AheadOfLog {
            contains: sealed.largest,
            last: self.last(),
        })?;
        let published = publication.run()?;
        self.finish_publication(&published);
        Ok(published)
    }
}
