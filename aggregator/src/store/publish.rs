//! Giving a sealed snapshot its name, and removing what it replaces.

use std::io;
use std::sync::Arc;

use super::create::name_whole;
use super::error::SnapshotError;
use super::open::Home;
use super::position::Position;
use super::snapshot_write::SealedSnapshot;

/// A snapshot that may get its name. Run it, then give what it returns to
/// [`Log::finish_publication`](super::Log::finish_publication).
#[must_use = "without its name the snapshot is given up"]
pub struct Publication {
    pub(super) home: Arc<Home>,
    pub(super) sealed: SealedSnapshot,
    /// First positions of the segments it replaces.
    pub(super) replaces: Vec<Position>,
}

/// What a published snapshot has done.
#[derive(Debug)]
#[must_use = "the log learns from it which segments are gone"]
pub struct Published {
    pub(super) removed: Vec<Position>,
    pub(super) log_bytes: u64,
}

impl Published {
    /// How many segments were removed.
    pub fn segments_removed(&self) -> usize {
        self.removed.len()
    }
}

impl Publication {
    /// Names the snapshot durably, then removes older snapshots and the
    /// segments it replaces. Waits for the disk.
    ///
    /// # Errors
    /// The name could not be given or made durable; nothing was removed.
    pub fn run(self) -> Result<Published, SnapshotError> {
        let Self {
            home,
            mut sealed,
            replaces,
        } = self;
        let directory = &home.directory;
        let tmp = sealed.file.tmp();
        let path = directory.snapshot(sealed.file.id.begun);
        name_whole(&*directory.disk, &directory.path, &tmp, &path).map_err(|error| {
            SnapshotError::Io {
                action: "name",
                file: path,
                source: error.into_io(),
            }
        })?;
        sealed.file.keep = true;
        remove_older_snapshots(&home, sealed.file.id.begun);
        let gone = |first: &Position| {
            let removed = directory.disk.remove(&directory.segment(*first));
            removed.map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true)
        };
        Ok(Published {
            removed: replaces.into_iter().filter(gone).collect(),
            log_bytes: sealed.log_bytes,
        })
    }
}

/// Best effort: the next snapshot or start removes what stays.
fn remove_older_snapshots(home: &Home, begun: Position) {
    let directory = &home.directory;
    let Ok(entries) = directory.entries() else {
        return;
    };
    for older in entries.snapshots.iter().filter(|at| **at < begun) {
        let _ = directory.disk.remove(&directory.snapshot(*older));
    }
}
