//! From a backup to a data directory that a start would take.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive;
use super::directory::{Directory, MARKER};
use super::disk::{Disk, Hold};
use super::error::OpenError;
use super::recover::recover;
use super::replay::{Discard, Report};

/// What is read and written at once.
const PIECE_BYTES: usize = 1 << 20;

/// The longest marker there can be.
const MARKER_BYTES_MAX: usize = 1 << 10;

/// Why a backup was not restored. The directory holds nothing of it.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup could not be read to its end.
    #[error("cannot read the backup")]
    Read(#[from] io::Error),
    /// Something in it is not of a data directory.
    #[error("{name:?} in the backup is not a file of a data directory; it is not one of ours")]
    Foreign {
        /// What it is called.
        name: String,
    },
    /// It was cut short.
    #[error("the backup has no end: it was cut short; take another")]
    CutShort,
    /// There is something where the backup should go.
    #[error("{} holds {found:?}; name an empty directory or one that does not exist", dir.display())]
    Occupied {
        /// The directory.
        dir: PathBuf,
        /// A file in it.
        found: String,
    },
    /// The directory is in use or cannot be written; or what was restored to it is
    /// damaged.
    #[error("cannot restore")]
    Directory(#[from] OpenError),
}

/// Makes `dir`, which must be empty or not exist, the data directory that
/// `backup` was taken of, and reads it as a start would. Returns what is in it.
///
/// # Errors
/// See [`RestoreError`]. What was written is removed again; should that fail or
/// the machine stop, the directory is not taken for a data directory.
pub fn restore(disk: Arc<dyn Disk>, dir: &Path, backup: impl Read) -> Result<Report, RestoreError> {
    let directory = Directory {
        disk,
        path: dir.to_owned(),
    };
    let made = directory.disk.create_dir(dir);
    made.map_err(OpenError::io("create", dir))?;
    let entries = directory.entries()?;
    if let Some(found) = entries.occupant() {
        let dir = dir.to_owned();
        return Err(RestoreError::Occupied { dir, found });
    }
    let _lock = directory.lock(Hold::Write)?;
    let mut written = Vec::new();
    let restored = fill(&directory, backup, &mut written);
    if restored.is_err() {
        for path in written.iter().rev() {
            // Best effort: without its marker it is no data directory.
            let _ = directory.disk.remove(path);
        }
    }
    restored
}

fn fill(
    directory: &Directory,
    backup: impl Read,
    written: &mut Vec<PathBuf>,
) -> Result<Report, RestoreError> {
    let mut marker = None;
    archive::read(backup, |name, content| {
        if name == MARKER {
            let mut bytes = Vec::new();
            content
                .take(MARKER_BYTES_MAX as u64)
                .read_to_end(&mut bytes)?;
            marker = Some(bytes);
            return Ok(());
        }
        if marker.is_some() || !Directory::is_state(name) {
            let name = name.to_owned();
            return Err(RestoreError::Foreign { name });
        }
        let path = directory.file(name);
        written.push(path.clone());
        copy(directory, &path, content)
    })?;
    directory.sync()?;
    let marker = marker.ok_or(RestoreError::CutShort)?;
    written.push(directory.file(MARKER));
    directory.mark(&marker)?;
    let (entries, store) = (directory.entries()?, directory.identity()?);
    let recovered = recover(directory, store, &entries, &mut Discard)?;
    Ok(recovered.report)
}

fn copy(directory: &Directory, path: &Path, content: &mut dyn Read) -> Result<(), RestoreError> {
    let created = directory.disk.create(path);
    let mut file = created.map_err(OpenError::io("create", path))?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = content.read(&mut piece)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        file.append(bytes).map_err(OpenError::io("write", path))?;
    }
    file.sync_data().map_err(OpenError::io("sync", path))?;
    Ok(())
}
