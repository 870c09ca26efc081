//! Where records go: a data directory, or a group of the shared store. The task does
//! not care which.

use super::snapshot::Shard;
use crate::{
    shared::{self, EngineError, SharedLog},
    store::{self, AppendError, CommitError, Durability, Log, Position, SnapshotError},
};

/// The log that the books are kept in.
pub(super) enum BookLog {
    Disk(Log),
    Shared(SharedLog),
}

/// A commit that is to be run where one may wait.
pub(super) enum Pending {
    Disk(store::Pending),
    Shared(shared::Pending),
}

/// A commit that has run.
pub(super) enum Finished {
    Disk(store::Finished),
    Shared(shared::Finished),
}

/// Why a commit is not durable.
#[derive(Debug, thiserror::Error)]
pub enum CommitFailure {
    /// The disk's fault.
    #[error(transparent)]
    Disk(#[from] CommitError),
    /// The shared store's.
    #[error(transparent)]
    Shared(#[from] EngineError),
}

/// A snapshot that is being written.
pub(super) enum Writer {
    Disk(store::SnapshotWriter),
    Shared(shared::Writer),
}

/// A snapshot that is whole and not in place.
pub(super) enum Sealed {
    Disk(Box<store::SealedSnapshot>),
    Shared(shared::Sealed),
}

/// A snapshot to be put in place where one may wait.
pub(super) enum Publication {
    Disk(store::Publication),
    Shared(shared::Publication),
}

/// A snapshot that is in place.
pub(super) enum Published {
    Disk(store::Published),
    Shared(shared::Published),
}

/// Why no snapshot was taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotFailure {
    /// The disk's fault.
    #[error(transparent)]
    Disk(#[from] SnapshotError),
    /// The shared store's.
    #[error(transparent)]
    Shared(#[from] EngineError),
}

impl CommitFailure {
    /// Whether the log is still good, so that the next commit may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Disk(error) => error.is_transient(),
            Self::Shared(error) => error.is_transient(),
        }
    }
}

impl BookLog {
    pub(super) fn append(&mut self, record: &[&[u8]]) -> Result<Position, AppendError> {
        match self {
            Self::Disk(log) => log.append(record),
            Self::Shared(log) => log.append(record),
        }
    }

    pub(super) fn last(&self) -> Position {
        match self {
            Self::Disk(log) => log.last(),
            Self::Shared(log) => log.last(),
        }
    }

    /// The last record that is this durable. The shared store has one durability: its own.
    pub(super) fn durable(&self, durability: Durability) -> Position {
        match self {
            Self::Disk(log) => log.durable(durability),
            Self::Shared(log) => log.durable(),
        }
    }

    pub(super) fn in_flight(&self) -> bool {
        match self {
            Self::Disk(log) => log.in_flight(),
            Self::Shared(log) => log.in_flight(),
        }
    }

    pub(super) fn waiting_bytes(&self) -> u64 {
        match self {
            Self::Disk(log) => log.waiting_bytes(),
            Self::Shared(log) => log.waiting_bytes(),
        }
    }

    pub(super) fn bytes_since_snapshot(&self) -> u64 {
        match self {
            Self::Disk(log) => log.bytes_since_snapshot(),
            Self::Shared(log) => log.log_bytes(),
        }
    }

    /// Files that the log is in; the shared store has none.
    pub(super) fn segments(&self) -> usize {
        match self {
            Self::Disk(log) => log.segments(),
            Self::Shared(_) => 0,
        }
    }

    pub(super) fn start_commit(
        &mut self,
        durability: Durability,
    ) -> Result<Option<Pending>, CommitFailure> {
        Ok(match self {
            Self::Disk(log) => log.start_commit(durability)?.map(Pending::Disk),
            Self::Shared(log) => log.start_commit()?.map(Pending::Shared),
        })
    }

    pub(super) fn finish_commit(&mut self, finished: Finished) -> Result<(), CommitFailure> {
        match (self, finished) {
            (Self::Disk(log), Finished::Disk(finished)) => {
                log.finish_commit(finished)?;
            }
            (Self::Shared(log), Finished::Shared(finished)) => log.finish_commit(finished)?,
            _ => return Err(CommitError::Failed.into()),
        }
        Ok(())
    }

    /// Ends it, with everything committed.
    pub(super) fn close(self) -> Result<(), CommitFailure> {
        if let Self::Disk(log) = self {
            log.close()?;
        }
        Ok(())
    }

    pub(super) fn begin_snapshot(&mut self, taken_at_ms: u64) -> Result<Writer, SnapshotFailure> {
        Ok(match self {
            Self::Disk(log) => Writer::Disk(log.begin_snapshot(taken_at_ms)?),
            Self::Shared(log) => Writer::Shared(log.begin_snapshot()),
        })
    }

    /// The snapshot comes back if the log is behind what it contains.
    pub(super) fn publish(&self, sealed: Sealed) -> Result<Publication, Sealed> {
        match (self, sealed) {
            (Self::Disk(log), Sealed::Disk(sealed)) => match log.publish(*sealed) {
                Ok(publication) => Ok(Publication::Disk(publication)),
                Err(sealed) => Err(Sealed::Disk(Box::new(sealed))),
            },
            (Self::Shared(log), Sealed::Shared(sealed)) => log
                .publish(sealed)
                .map(Publication::Shared)
                .map_err(Sealed::Shared),
            (_, sealed) => Err(sealed),
        }
    }

    pub(super) fn finish_publication(&mut self, published: &Published) {
        match (self, published) {
            (Self::Disk(log), Published::Disk(published)) => log.finish_publication(published),
            (Self::Shared(log), Published::Shared(published)) => {
                log.finish_publication(published);
            }
            _ => {}
        }
    }
}

impl Pending {
    /// Waits for the disk, or for the shared store.
    pub(super) fn run(self) -> Finished {
        match self {
            Self::Disk(pending) => Finished::Disk(pending.run()),
            Self::Shared(pending) => Finished::Shared(pending.run()),
        }
    }
}

impl Writer {
    pub(super) fn shard(&mut self, shard: &Shard) -> Result<(), SnapshotFailure> {
        let whole = [Vec::new()];
        let chunks = match shard.chunks.is_empty() {
            true => &whole[..],
            false => &shard.chunks,
        };
        for chunk in chunks {
            match self {
                Self::Disk(writer) => writer.shard(shard.partition, shard.contains, chunk)?,
                Self::Shared(writer) => writer.shard(shard.partition, shard.contains, chunk)?,
            }
        }
        Ok(())
    }

    pub(super) fn seal(self) -> Result<Sealed, SnapshotFailure> {
        Ok(match self {
            Self::Disk(writer) => Sealed::Disk(Box::new(writer.seal()?)),
            Self::Shared(writer) => Sealed::Shared(writer.seal()),
        })
    }
}

impl Publication {
    pub(super) fn run(self) -> Result<Published, SnapshotFailure> {
        Ok(match self {
            Self::Disk(publication) => Published::Disk(publication.run()?),
            Self::Shared(publication) => Published::Shared(publication.run()?),
        })
    }
}

impl Published {
    pub(super) fn segments_removed(&self) -> usize {
        match self {
            Self::Disk(published) => published.segments_removed(),
            Self::Shared(_) => 0,
        }
    }
}
