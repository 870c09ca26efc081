//! A commit under way: the records taken from the log, to be written and
//! synced on any thread while the log takes more.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::create::{CreateError, create_whole};
use super::disk::File;
use super::error::CommitError;
use super::open::Home;
use super::options::Durability;
use super::position::Position;
use super::segment::{HEADER_BYTES, Head, SegmentId};

/// The segment that is written.
pub(super) struct Active {
    pub(super) file: Box<dyn File>,
    pub(super) first: Position,
    /// Bytes of it that count.
    pub(super) len: u64,
    /// Whether something was written or cut since its last sync.
    pub(super) dirty: bool,
}

/// The records of one commit: space for a head, then the records.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) bytes: Vec<u8>,
    pub(super) first: Position,
    pub(super) count: u32,
}

impl Gathered {
    fn last(&self) -> Position {
        self.first.plus(self.count).previous()
    }
}

/// A commit that is to be written. Run it, then give what it returns to
/// [`Log::finish_commit`](super::Log::finish_commit).
///
/// A `Pending` that is dropped instead takes the log's file with it: the log
/// then waits for it for ever.
#[must_use = "the log waits until this has run and was given back"]
pub struct Pending {
    pub(super) home: Arc<Home>,
    pub(super) active: Active,
    pub(super) gathered: Gathered,
    pub(super) durability: Durability,
    /// Whether the next batch should begin a segment.
    pub(super) rotate: bool,
    /// Whether a batch is written even without records, to close the log.
    pub(super) closing: bool,
    pub(super) written: Position,
    pub(super) synced: Position,
    /// The segment that was begun, if one was.
    pub(super) rotated: Option<Position>,
}

/// A commit that has run, for better or worse.
#[must_use = "the log waits until this was given back"]
pub struct Finished {
    pub(super) pending: Pending,
    pub(super) outcome: Result<(), CommitError>,
}

impl Pending {
    /// Writes, and syncs if that was asked for. Waits for the disk.
    pub fn run(mut self) -> Finished {
        let outcome = self.attempt();
        Finished {
            pending: self,
            outcome,
        }
    }

    fn attempt(&mut self) -> Result<(), CommitError> {
        let batch = self.gathered.count > 0;
        if batch {
            self.begin_segment_if_due()?;
        }
        let before = self.active.len;
        if batch || self.closing {
            self.write()?;
        }
        if self.durability == Durability::Fsynced && self.active.dirty {
            self.sync().inspect_err(|_| {
                // Nobody was told of these records, and their pages may look
                // written without being on the device: a restart that read
                // them would believe them. Best effort.
                let _ = self.active.file.set_len(before);
            })?;
        }
        Ok(())
    }

    /// Begins the next segment if this one is full, after syncing this one:
    /// only the last may have a torn tail.
    fn begin_segment_if_due(&mut self) -> Result<(), CommitError> {
        let full = self.active.len >= self.home.options.segment_bytes_max;
        // One without a record, though perhaps closed before, has the name that
        // the next would have.
        let empty = self.active.first == self.gathered.first;
        if !(full || self.rotate) || empty {
            return Ok(());
        }
        if self.active.dirty {
            self.sync()?;
        }
        let first = self.gathered.first;
        let id = self.id(first);
        let (name, directory) = (id.name(), &self.home.directory);
        let path = directory.file(&name);
        let made = create_whole(&*directory.disk, &directory.path, &name, &id.header());
        let file = made.map_err(|error| match error {
            CreateError::Write(source) => refused(&path, source),
            CreateError::Sync(source) => CommitError::Sync { file: path, source },
        })?;
        self.active = Active {
            file,
            first,
            len: HEADER_BYTES as u64,
            dirty: false,
        };
        self.rotated = Some(first);
        Ok(())
    }

    fn write(&mut self) -> Result<(), CommitError> {
        let head = Head {
            count: self.gathered.count,
            first: self.gathered.first,
            synced: self.synced,
        };
        let offset = self.active.len;
        head.write(self.id(self.active.first), offset, &mut self.gathered.bytes);
        self.active.dirty = true;
        if let Err(source) = self.active.file.append(&self.gathered.bytes) {
            let file = self.path();
            return Err(match self.active.file.set_len(offset) {
                Ok(()) => refused(&file, source),
                Err(source) => CommitError::CutBack { file, source },
            });
        }
        self.active.len += self.gathered.bytes.len() as u64;
        self.written = self.gathered.last();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), CommitError> {
        let synced = self.active.file.sync_data();
        synced.map_err(|source| CommitError::Sync {
            file: self.path(),
            source,
        })?;
        self.active.dirty = false;
        self.synced = self.written;
        Ok(())
    }

    fn id(&self, first: Position) -> SegmentId {
        SegmentId {
            store: self.home.store,
            first,
        }
    }

    fn path(&self) -> PathBuf {
        self.home.directory.segment(self.active.first)
    }
}

/// A write that was refused and has left nothing behind.
fn refused(file: &Path, source: io::Error) -> CommitError {
    let file = file.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            CommitError::Full { file, source }
        }
        _ => CommitError::Write { file, source },
    }
}
