//! Writing a snapshot, shard by shard, at the caller's pace and on any thread.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::create::unfinished;
use super::directory::Directory;
use super::disk::File;
use super::error::SnapshotError;
use super::fields::{checksum, opening, seal};
use super::position::Position;
use super::snapshot::{CHUNK_BYTES_MAX, Head, MAGIC, SnapshotId, name};

/// What is gathered before it is handed to the disk.
const BUFFER_BYTES: usize = 256 << 10;

/// A snapshot being written. Dropping it gives it up.
///
/// It does not touch the log, so it may live on a thread of its own while the
/// log goes on. No file is made before the first shard.
pub struct SnapshotWriter {
    pub(super) file: Unnamed,
    pub(super) sync_bytes: u64,
    pub(super) taken_at_ms: u64,
    /// The log's bytes when it was begun, to tell what came since.
    pub(super) log_bytes: u64,
    pub(super) under_way: Arc<()>,
    /// The first record in the log: what came before must be in every shard.
    pub(super) log_begins: Position,
    pub(super) state: State,
}

/// How far a snapshot has come.
#[derive(Default)]
pub(super) struct State {
    open: Option<Box<dyn File>>,
    buffer: Vec<u8>,
    unsynced: u64,
    chunks: u64,
    shards: u32,
    shard: Option<(u32, Position)>,
    smallest: Position,
    largest: Position,
}

impl State {
    /// Nothing yet of a snapshot begun after record `begun`.
    ///
    /// The name carries `begun`, so the log must be synced up to there too: a
    /// name must not outlive the records it counts, or a later snapshot would
    /// seem older.
    pub(super) fn begun(begun: Position) -> Self {
        Self {
            largest: begun,
            ..Self::default()
        }
    }
}

/// A file that does not have its name yet, and is removed if it never gets it.
pub(super) struct Unnamed {
    pub(super) directory: Directory,
    pub(super) id: SnapshotId,
    pub(super) keep: bool,
}

impl Unnamed {
    pub(super) fn tmp(&self) -> PathBuf {
        self.directory.file(&unfinished(&name(self.id.begun)))
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.keep {
            // Best effort: the next start removes what is left.
            let _ = self.directory.disk.remove(&self.tmp());
        }
    }
}

/// A snapshot whose content is whole and synced, still without its name.
pub struct SealedSnapshot {
    pub(super) file: Unnamed,
    pub(super) smallest: Position,
    pub(super) largest: Position,
    pub(super) log_bytes: u64,
    /// Held for as long as the snapshot is under way.
    pub(super) _under_way: Arc<()>,
}

impl SealedSnapshot {
    /// The last record it contains: the log must be synced up to it before the
    /// snapshot can be published.
    pub fn contains(&self) -> Position {
        self.largest
    }
}

impl SnapshotWriter {
    /// Adds a shard, or a part of one. All parts of a shard follow one another
    /// and have the same `contains`: the last record of the log when the
    /// content was taken, whether it touched this shard or not.
    ///
    /// A shard without content is given once, with no bytes.
    ///
    /// # Errors
    /// The disk is full or failed, or the parts of a shard disagree. The
    /// snapshot is then worth nothing: drop it.
    pub fn shard(
        &mut self,
        shard: u32,
        contains: Position,
        bytes: &[u8],
    ) -> Result<(), SnapshotError> {
        self.enter_shard(shard, contains)?;
        if bytes.is_empty() {
            return self.chunk(shard, contains, &[]);
        }
        for part in bytes.chunks(CHUNK_BYTES_MAX) {
            self.chunk(shard, contains, part)?;
        }
        Ok(())
    }

    /// Ends the snapshot and syncs it. This is the slow part: it may wait long
    /// for the device.
    ///
    /// # Errors
    /// The disk is full or failed, or no shard was given.
    pub fn seal(mut self) -> Result<SealedSnapshot, SnapshotError> {
        if self.state.shards == 0 {
            return Err(SnapshotError::Empty);
        }
        let footer = Head::Footer {
            shards: self.state.shards,
            smallest: self.state.smallest,
            chunks: low_half(self.state.chunks),
        };
        let footer = footer.encode(self.file.id, self.state.chunks);
        self.state.buffer.extend_from_slice(&footer);
        self.flush(true)?;
        Ok(SealedSnapshot {
            file: self.file,
            smallest: self.state.smallest,
            largest: self.state.largest,
            log_bytes: self.log_bytes,
            _under_way: self.under_way,
        })
    }

    fn enter_shard(&mut self, shard: u32, contains: Position) -> Result<(), SnapshotError> {
        if contains.next() < self.log_begins {
            return Err(SnapshotError::BehindLog {
                shard,
                contains,
                begins: self.log_begins,
            });
        }
        match self.state.shard {
            Some((last, first)) if last == shard => {
                return if first == contains {
                    Ok(())
                } else {
                    Err(SnapshotError::TwoPositions {
                        shard,
                        first,
                        then: contains,
                    })
                };
            }
            Some(_) => self.state.smallest = self.state.smallest.min(contains),
            None => self.state.smallest = contains,
        }
        self.state.largest = self.state.largest.max(contains);
        self.state.shard = Some((shard, contains));
        self.state.shards = self.state.shards.saturating_add(1);
        Ok(())
    }

    fn chunk(&mut self, shard: u32, contains: Position, part: &[u8]) -> Result<(), SnapshotError> {
        let head = Head::Chunk {
            shard,
            contains,
            len: u32::try_from(part.len()).unwrap_or(u32::MAX),
            sum: checksum(&[part]),
        };
        let head = head.encode(self.file.id, self.state.chunks);
        self.state.chunks = self.state.chunks.saturating_add(1);
        self.state.buffer.extend_from_slice(&head);
        self.state.buffer.extend_from_slice(part);
        if self.state.buffer.len() < BUFFER_BYTES {
            return Ok(());
        }
        let unsynced = self.state.unsynced + self.state.buffer.len() as u64;
        self.flush(unsynced >= self.sync_bytes)
    }

    fn flush(&mut self, sync: bool) -> Result<(), SnapshotError> {
        let tmp = self.file.tmp();
        let failed = |action| {
            let file = tmp.clone();
            move |source: io::Error| SnapshotError::Io {
                action,
                file,
                source,
            }
        };
        let mut file = match self.state.open.take() {
            Some(file) => file,
            None => self.begin_file().map_err(failed("create"))?,
        };
        file.append(&self.state.buffer).map_err(failed("write"))?;
        self.state.unsynced += self.state.buffer.len() as u64;
        self.state.buffer.clear();
        if sync {
            file.sync_data().map_err(failed("sync"))?;
            self.state.unsynced = 0;
        }
        self.state.open = Some(file);
        Ok(())
    }

    fn begin_file(&self) -> io::Result<Box<dyn File>> {
        let SnapshotId { store, begun } = self.file.id;
        let mut header = opening(MAGIC, store);
        header.extend_from_slice(&begun.number().to_le_bytes());
        header.extend_from_slice(&self.taken_at_ms.to_le_bytes());
        let mut file = self.file.directory.disk.create(&self.file.tmp())?;
        file.append(&seal(&[], header))?;
        Ok(file)
    }
}

/// The low 32 bits.
pub(super) fn low_half(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
