//! The embedded durable log: what is committed here survives.
//!
//! It stores opaque records in order and opaque snapshots of shards, and gives
//! both back when a data directory is opened again. It knows nothing of
//! counters. The ledger's map is the truth while the service runs; this log is
//! what makes it durable.
//!
//! # The data directory
//!
//! | file | owner | holds |
//! |---|---|---|
//! | `weir-data` | `directory.rs` | that this is a data directory, its version and identity |
//! | `LOCK` | `directory.rs` | nothing durable; held by the process that writes here |
//! | `log-<first position>.seg` | `segment.rs` | batches of records |
//! | `snapshot-<position>.snap` | `snapshot.rs` | every shard, each with the position it contains |
//! | `*.tmp` | `directory.rs` | a file not finished; removed by the next start |
//!
//! # Invariants
//!
//! - A file gets its final name only when its first content is on disk, so a
//!   segment or snapshot with a bad header is damage and never a crash.
//! - A segment is synced before the next one is created, so only the last one
//!   can have a torn tail.
//! - A snapshot gets its name only when the log is synced up to every position
//!   the snapshot contains, so a position is never given out twice.
//! - Nothing is removed before the snapshot that replaces it is on disk.
//! - A directory that is refused is left as it was, but for its `LOCK`.
//!
//! No clock is read here: the caller says when a snapshot was begun, and
//! measures how long a start took.

mod archive;
mod backup;
mod create;
mod directory;
mod disk;
mod error;
#[cfg(any(test, feature = "fake-disk"))]
mod fake_disk;
mod fields;
mod log;
mod log_snapshots;
mod open;
mod options;
mod pending;
mod position;
mod publish;
mod real_disk;
mod recover;
mod replay;
mod restore;
mod scan;
mod segment;
mod snapshot;
mod snapshot_read;
mod snapshot_write;
#[cfg(test)]
mod tests;

pub use backup::Backup;
pub use disk::{Disk, File, Hold, Lock, Locking, Room};
pub use error::{AppendError, CommitError, Damage, OpenError, SnapshotError};
#[cfg(any(test, feature = "fake-disk"))]
pub use fake_disk::{Crash, FakeDisk};
pub use log::Log;
pub use open::verify;
pub use options::{Durability, Options};
pub use pending::{Finished, Pending};
pub use position::Position;
pub use publish::{Publication, Published};
pub use real_disk::RealDisk;
pub use replay::{Replay, ReplayError, Report};
pub use restore::{RestoreError, restore};
pub use snapshot_write::{SealedSnapshot, SnapshotWriter};
