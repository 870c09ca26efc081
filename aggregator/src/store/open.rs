//! Opening a data directory: make it or recover it, and only then change it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::directory::{Directory, Entries};
use super::disk::{Disk, Hold, Lock};
use super::error::OpenError;
use super::log::Log;
use super::options::Options;
use super::pending::Active;
use super::position::Position;
use super::recover::{Recovered, recover};
use super::replay::{Discard, Replay, Report};

/// A directory that is ours and open.
pub(super) struct Home {
    pub(super) directory: Directory,
    pub(super) store: u64,
    pub(super) options: Options,
    /// Held until the last thread that writes here is done.
    pub(super) _lock: Lock,
}

impl Log {
    /// Opens the data directory `dir`, or makes it, and hands everything in it
    /// to `replay`: first the snapshot's shards, then the records after.
    ///
    /// A torn tail, which a crash leaves of a commit nobody was told of, is cut
    /// off and reported. What was read is durable when this returns.
    ///
    /// # Errors
    /// The directory is not ours, in use, of a later version, damaged or
    /// incomplete, or the disk failed. It is then left as it was, and `replay`
    /// may have been given a part.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<(Self, Report), OpenError> {
        let directory = Directory {
            disk,
            path: dir.to_owned(),
        };
        let (lock, created) = claim(&directory)?;
        let entries = directory.entries()?;
        let store = directory.identity()?;
        let mut recovered = recover(&directory, store, &entries, replay)?;
        recovered.report.created = created;
        let active = settle(&directory, &entries, &recovered)?;
        let home = Home {
            directory,
            store,
            options: options.bounded(),
            _lock: lock,
        };
        let segments = kept(&entries, &recovered);
        let log = Self::resume(home, active, segments, &recovered);
        Ok((log, recovered.report))
    }
}

/// Reads everything that a start would read, and changes nothing.
///
/// # Errors
/// As [`Log::open`], and if there is no data directory.
pub fn verify(disk: Arc<dyn Disk>, dir: &Path) -> Result<Report, OpenError> {
    let directory = Directory {
        disk,
        path: dir.to_owned(),
    };
    let entries = directory.entries()?;
    if !entries.marker {
        return Err(OpenError::Absent {
            dir: dir.to_owned(),
        });
    }
    let lock = entries.lock.then(|| directory.lock(Hold::Read));
    let _lock = lock.transpose()?;
    let entries = directory.entries()?;
    let store = directory.identity()?;
    let recovered = recover(&directory, store, &entries, &mut Discard)?;
    Ok(recovered.report)
}

/// Locks the directory, and makes it a data directory if it was blank.
fn claim(directory: &Directory) -> Result<(Lock, bool), OpenError> {
    match directory.entries() {
        Ok(entries) if entries.marker => {}
        // Looked at before the lock file is made: it is not ours to touch.
        Ok(entries) => directory.check_blank(&entries)?,
        Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let made = directory.disk.create_dir(&directory.path);
            made.map_err(OpenError::io("create", &directory.path))?;
        }
        Err(error) => return Err(error),
    }
    let lock = directory.lock(Hold::Write)?;
    let entries = directory.entries()?;
    if entries.marker {
        return Ok((lock, false));
    }
    directory.check_blank(&entries)?;
    let store = getrandom::u64().map_err(|error| {
        OpenError::io("name", &directory.path)(io::Error::other(error.to_string()))
    })?;
    directory.make(store)?;
    Ok((lock, true))
}

/// Cuts the torn tail, makes what was read durable, and clears away leftovers.
fn settle(
    directory: &Directory,
    entries: &Entries,
    recovered: &Recovered,
) -> Result<Active, OpenError> {
    let path = directory.segment(recovered.last);
    let mut file = directory
        .disk
        .open_append(&path)
        .map_err(OpenError::io("open", &path))?;
    let len = recovered.end.whole_bytes;
    if recovered.end.torn_bytes > 0 {
        file.set_len(len).map_err(OpenError::io("cut", &path))?;
    }
    // What an earlier process only wrote, or renamed, counts from now on.
    file.sync_data().map_err(OpenError::io("sync", &path))?;
    directory.sync()?;
    clear_away(directory, entries, recovered);
    Ok(Active {
        file,
        first: recovered.last,
        len,
        dirty: false,
    })
}

/// Removes what the snapshot replaces and what was never finished. Best
/// effort: what stays is removed by the next start.
fn clear_away(directory: &Directory, entries: &Entries, recovered: &Recovered) {
    let disk = &directory.disk;
    for name in &entries.unfinished {
        let _ = disk.remove(&directory.file(name));
    }
    let Some(snapshot) = recovered.snapshot else {
        return;
    };
    for begun in entries.snapshots.iter().filter(|at| **at < snapshot.begun) {
        let _ = disk.remove(&directory.snapshot(*begun));
    }
    for first in replaced(&entries.segments, snapshot.smallest) {
        let _ = disk.remove(&directory.segment(first));
    }
}

/// The segments that hold nothing after `contained`.
pub(super) fn replaced(segments: &[Position], contained: Position) -> Vec<Position> {
    let pairs = segments.iter().zip(segments.iter().skip(1));
    pairs
        .filter(|(_, next)| **next <= contained.next())
        .map(|(first, _)| *first)
        .collect()
}

fn kept(entries: &Entries, recovered: &Recovered) -> Vec<Position> {
    let contained = recovered
        .snapshot
        .map_or(Position::START, |snapshot| snapshot.smallest);
    let gone = replaced(&entries.segments, contained);
    let all = entries.segments.iter().copied();
    all.filter(|first| !gone.contains(first)).collect()
}
