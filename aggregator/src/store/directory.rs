//! The data directory: what is in it, whether it is ours, and whose it is now.
//!
//! The marker `weir-data` holds a magic of 8 bytes, a format version of 4, the
//! directory's random identity of 8 and a CRC-32. It is written last when a
//! directory is made, after the first segment, so a directory with a marker
//! always has a segment: if none is there, someone removed it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::create::create_whole;
use super::disk::{Disk, Hold, Lock, Locking};
use super::error::OpenError;
use super::fields::{BadOpening, open_header, opening, seal};
use super::position::Position;
use super::segment::{HEADER_BYTES, SegmentId};
use super::snapshot;

pub(super) const MARKER: &str = "weir-data";
const LOCK: &str = "LOCK";
const MAGIC: &[u8; 8] = b"WEIRDATA";

/// A data directory on a disk.
#[derive(Clone)]
pub(super) struct Directory {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) path: PathBuf,
}

/// The names in a data directory, sorted by what they are.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) marker: bool,
    pub(super) lock: bool,
    /// First positions, ascending.
    pub(super) segments: Vec<Position>,
    /// Positions at which snapshots were begun, ascending.
    pub(super) snapshots: Vec<Position>,
    /// Names of files of ours that were not finished.
    pub(super) unfinished: Vec<String>,
    /// Names that are not ours.
    pub(super) foreign: Vec<String>,
}

impl Entries {
    fn sort(names: Vec<String>) -> Self {
        let mut entries = Self::default();
        for name in names {
            entries.add(name);
        }
        entries.segments.sort_unstable();
        entries.snapshots.sort_unstable();
        entries.foreign.sort_unstable();
        entries
    }

    /// A file that keeps the directory from being empty; a lock does not.
    pub(super) fn occupant(&self) -> Option<String> {
        let marker = self.marker.then(|| MARKER.to_owned());
        let segment = self.segments.first().map(|first| segment_name(*first));
        let snapshot = self.snapshots.first().map(|begun| snapshot::name(*begun));
        let others = self.foreign.first().or(self.unfinished.first()).cloned();
        marker.or(segment).or(snapshot).or(others)
    }

    fn add(&mut self, name: String) {
        let whole = name.strip_suffix(".tmp").unwrap_or(&name);
        let segment = numbered(whole, "log-", ".seg");
        let snapshot = numbered(whole, "snapshot-", ".snap");
        if whole.len() < name.len() {
            if segment.or(snapshot).is_some() || whole == MARKER {
                self.unfinished.push(name);
            } else {
                self.foreign.push(name);
            }
        } else if let Some(first) = segment {
            self.segments.push(first);
        } else if let Some(begun) = snapshot {
            self.snapshots.push(begun);
        } else if name == MARKER {
            self.marker = true;
        } else if name == LOCK {
            self.lock = true;
        } else if name != "lost+found" {
            // A volume's own directory; a fresh volume is a fine data directory.
            self.foreign.push(name);
        }
    }
}

/// The number in a name like `log-00000000000000000001.seg`.
fn numbered(name: &str, prefix: &str, suffix: &str) -> Option<Position> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain
        .then(|| digits.parse().ok())
        .flatten()
        .map(Position::new)
}

/// The name of the segment that begins with this record, in any directory.
pub(super) fn segment_name(first: Position) -> String {
    SegmentId { store: 0, first }.name()
}

impl Directory {
    /// Whether a file of this name is a segment or a snapshot.
    pub(super) fn is_state(name: &str) -> bool {
        let segment = numbered(name, "log-", ".seg");
        segment.or(numbered(name, "snapshot-", ".snap")).is_some()
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn segment(&self, first: Position) -> PathBuf {
        self.file(&segment_name(first))
    }

    pub(super) fn snapshot(&self, begun: Position) -> PathBuf {
        self.file(&snapshot::name(begun))
    }

    pub(super) fn entries(&self) -> Result<Entries, OpenError> {
        let names = self.disk.list(&self.path);
        names
            .map(Entries::sort)
            .map_err(OpenError::io("list", &self.path))
    }

    pub(super) fn read(&self, path: &Path) -> Result<Vec<u8>, OpenError> {
        let mut bytes = Vec::new();
        let mut file = self
            .disk
            .open_read(path)
            .map_err(OpenError::io("open", path))?;
        file.read_to_end(&mut bytes)
            .map_err(OpenError::io("read", path))?;
        Ok(bytes)
    }

    pub(super) fn sync(&self) -> Result<(), OpenError> {
        let synced = self.disk.sync_dir(&self.path);
        synced.map_err(OpenError::io("sync", &self.path))
    }

    pub(super) fn lock(&self, hold: Hold) -> Result<Lock, OpenError> {
        let file = self.file(LOCK);
        let locking = self.disk.lock(&file, hold);
        match locking.map_err(OpenError::io("lock", &file))? {
            Locking::Held(lock) => Ok(lock),
            Locking::Busy(owner) => Err(OpenError::Locked {
                dir: self.path.clone(),
                owner: if owner.is_empty() {
                    "another process".to_owned()
                } else {
                    owner
                },
            }),
        }
    }

    /// Refuses a directory without a marker that may hold anything of worth.
    pub(super) fn check_blank(&self, entries: &Entries) -> Result<(), OpenError> {
        let refuse = |found: String| {
            Err(OpenError::NotADataDirectory {
                dir: self.path.clone(),
                found,
            })
        };
        if let Some(found) = entries.foreign.first() {
            return refuse(found.clone());
        }
        if let Some(begun) = entries.snapshots.first() {
            return refuse(snapshot::name(*begun));
        }
        for first in &entries.segments {
            // What a crash leaves while a directory is made: one segment
            // without a batch.
            let path = self.segment(*first);
            if *first != Position::START.next() || self.read(&path)?.len() > HEADER_BYTES {
                return refuse(segment_name(*first));
            }
        }
        Ok(())
    }

    /// Makes the marker, which is what makes this a data directory.
    pub(super) fn mark(&self, content: &[u8]) -> Result<(), OpenError> {
        create_whole(&*self.disk, &self.path, MARKER, content)
            .map(drop)
            .map_err(|error| OpenError::io("create", &self.file(MARKER))(error.into_io()))
    }

    /// Makes the first segment and then the marker.
    pub(super) fn make(&self, store: u64) -> Result<(), OpenError> {
        let first = SegmentId {
            store,
            first: Position::START.next(),
        };
        let marker = seal(&[], opening(MAGIC, store));
        for (name, content) in [(first.name(), first.header()), (MARKER.to_owned(), marker)] {
            create_whole(&*self.disk, &self.path, &name, &content)
                .map_err(|error| OpenError::io("create", &self.file(&name))(error.into_io()))?;
        }
        Ok(())
    }

    /// The identity in the marker.
    pub(super) fn identity(&self) -> Result<u64, OpenError> {
        let path = self.file(MARKER);
        let bytes = self.read(&path)?;
        let damaged = |found| {
            Err(OpenError::damaged(
                &path,
                0,
                "the marker of a data directory",
                found,
            ))
        };
        match open_header(MAGIC, &bytes) {
            Ok((store, _)) => Ok(store),
            Err(BadOpening::Checksum) => damaged("one whose checksum is wrong"),
            Err(BadOpening::Magic) => damaged("something else"),
            Err(BadOpening::Version(found)) => Err(OpenError::format(&path, found)),
        }
    }
}
