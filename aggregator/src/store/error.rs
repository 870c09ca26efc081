//! What can go wrong, one enum per operation, each saying what to do.

use std::io;
use std::path::{Path, PathBuf};

use super::fields::FORMAT_VERSION;
use super::position::Position;
use super::replay::ReplayError;

/// Why a record was not taken. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The record alone is over the limit; it can never be taken.
    #[error("a record of {bytes} bytes is over the limit of {max}")]
    RecordTooLarge {
        /// The length of the record, in bytes.
        bytes: u64,
        /// The longest record, in bytes.
        max: u32,
    },
    /// Too much waits to be committed: commit, then try again.
    #[error("{waiting} bytes wait for a commit; the buffer takes {max}")]
    BufferFull {
        /// What waits already, in bytes.
        waiting: u64,
        /// The most that may wait, in bytes.
        max: u32,
    },
    /// An earlier commit failed for good; the log takes no more.
    #[error("the log failed earlier and takes no more records; restart to recover it")]
    Failed,
}

/// Why a commit is not durable. The records it held are kept and go out with
/// the next commit, unless the log has failed for good.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The disk is full. What was written in part was cut back; commit again
    /// once there is room.
    #[error("no room to write {}", file.display())]
    Full {
        /// The file that could not grow.
        file: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// The disk refused the write. What was written in part was cut back.
    #[error("cannot write {}", file.display())]
    Write {
        /// The file that was written.
        file: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// A sync failed, so nobody can say what is on the disk. The log takes no
    /// more; a restart finds out.
    #[error("cannot sync {}; restart to recover the log", file.display())]
    Sync {
        /// The file or directory that was synced.
        file: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// A write failed and its part could not be cut back. The log takes no
    /// more; a restart cuts it.
    #[error("cannot cut back {}; restart to recover the log", file.display())]
    CutBack {
        /// The file that was cut.
        file: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// An earlier commit failed for good.
    #[error("the log failed earlier; restart to recover it")]
    Failed,
    /// The commit before has not finished; there is one at a time.
    #[error("the commit before is still under way")]
    InFlight,
}

impl CommitError {
    /// Whether the log is still good, so that the next commit may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Full { .. } | Self::Write { .. } | Self::InFlight
        )
    }
}

/// Why a snapshot was not taken. The log goes on without it.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A file operation failed.
    #[error("cannot {action} {}", file.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file or directory.
        file: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// Another one has been begun and is neither published nor dropped.
    #[error("another snapshot is still under way")]
    UnderWay,
    /// No shard was given, so the snapshot would stand for nothing.
    #[error("a snapshot without shards stands for nothing")]
    Empty,
    /// A shard claims to contain a record that was never appended.
    #[error("the snapshot contains record {contains}, but the log ends with {last}")]
    AheadOfLog {
        /// The last record in the snapshot.
        contains: Position,
        /// The last record in the log.
        last: Position,
    },
    /// The log no longer holds what would have to be replayed on this shard.
    #[error("shard {shard} contains records up to {contains}, but the log begins with {begins}")]
    BehindLog {
        /// The shard.
        shard: u32,
        /// The last record it contains.
        contains: Position,
        /// The first record in the log.
        begins: Position,
    },
    /// The chunks of one shard named different positions.
    #[error("shard {shard} came with two positions, {first} and {then}")]
    TwoPositions {
        /// The shard.
        shard: u32,
        /// The position its first chunk came with.
        first: Position,
        /// The position this chunk came with.
        then: Position,
    },
    /// The log itself could not be made durable first.
    #[error("the log could not be committed before its snapshot")]
    Commit(#[from] CommitError),
}

/// A place in a file that does not hold what was written there.
#[derive(Debug, thiserror::Error)]
#[error("{} is damaged at byte {offset}: expected {expected}, found {found}; {remedy}", file.display())]
pub struct Damage {
    /// The damaged file.
    pub file: PathBuf,
    /// Where in the file, in bytes from its beginning.
    pub offset: u64,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// What the operator can do.
    pub remedy: &'static str,
}

/// What to do about a file whose content is wrong.
pub(super) const RESTORE: &str = "restore the data directory from a backup or another replica, \
     or move it away to begin with empty counters";

/// Why a data directory is refused. It was left as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file operation failed.
    #[error("cannot {action} {}", file.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file or directory.
        file: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// The directory holds something else.
    #[error(
        "{} is not a data directory: it has no weir-data but holds {found:?}; \
         name an empty directory or one that does not exist",
        dir.display()
    )]
    NotADataDirectory {
        /// The directory.
        dir: PathBuf,
        /// A file in it that is not ours, or is without its marker.
        found: String,
    },
    /// There is nothing to verify.
    #[error("{} is not a data directory: it has no weir-data", dir.display())]
    Absent {
        /// The directory.
        dir: PathBuf,
    },
    /// Another live process has it open.
    #[error("{} is in use by {owner}; stop it, or name another directory", dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// What the lock file says of the owner.
        owner: String,
    },
    /// A later version wrote it.
    #[error(
        "{} has format {found}, but this version reads up to {known}; \
         start the version that wrote it, or a later one",
        file.display()
    )]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// Its format version.
        found: u32,
        /// The latest this version knows.
        known: u32,
    },
    /// An earlier version wrote it, from before the first release.
    #[error(
        "{} has format {found}, but this version reads {known}; start the version that \
         wrote it, or move the data directory away to begin with empty counters",
        file.display()
    )]
    OlderFormat {
        /// The file.
        file: PathBuf,
        /// Its format version.
        found: u32,
        /// The only one this version knows.
        known: u32,
    },
    /// A file does not hold what was written to it.
    #[error(transparent)]
    Damaged(Box<Damage>),
    /// Records are missing: a segment is gone.
    #[error(
        "{} is missing (it should begin with record {expected}); \
         restore it, or move the data directory away to begin with empty counters",
        file.display()
    )]
    MissingSegment {
        /// The segment that should be there.
        file: PathBuf,
        /// The first record that is missing.
        expected: Position,
    },
    /// The caller did not accept what was read.
    #[error("cannot replay {what}")]
    Replay {
        /// The shard or record, in words.
        what: String,
        /// What the caller said.
        source: ReplayError,
    },
}

impl OpenError {
    pub(super) fn io(action: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |source| Self::Io {
            action,
            file,
            source,
        }
    }

    /// A file of another format.
    pub(super) fn format(file: &Path, found: u32) -> Self {
        let (file, known) = (file.to_owned(), FORMAT_VERSION);
        match found > known {
            true => Self::NewerFormat { file, found, known },
            false => Self::OlderFormat { file, found, known },
        }
    }

    pub(super) fn damaged(
        file: &Path,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Damaged(Box::new(Damage {
            file: file.to_owned(),
            offset,
            expected: expected.into(),
            found: found.into(),
            remedy: RESTORE,
        }))
    }
}
