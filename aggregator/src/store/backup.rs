//! Copying a data directory while it is in use.
//!
//! Its files never change but at the end of the last segment, so all of them,
//! each as long as it is now, are a directory that a start would take: with
//! everything that is durable now, and at worst a torn tail. What a snapshot
//! removes meanwhile stays readable, because it is open by then.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::archive::{self, Archive};
use super::directory::{Directory, Entries, MARKER, segment_name};
use super::disk::Disk;
use super::error::OpenError;
use super::snapshot;

/// How often the files may change under our hands while they are opened. A
/// snapshot is published at most every few seconds.
const TRIES: u32 = 16;

/// A data directory as it was at one moment, still to be read.
pub struct Backup(Vec<Original>);

struct Original {
    name: String,
    len: u64,
    content: Box<dyn Read + Send>,
}

impl Backup {
    /// Takes hold of everything that is durable in `dir`, which another thread
    /// or process may be writing to.
    ///
    /// # Errors
    /// There is no data directory, the disk failed, or the files changed each
    /// time they were opened.
    pub fn of(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, OpenError> {
        let directory = Directory {
            disk,
            path: dir.to_owned(),
        };
        for _ in 0..TRIES {
            let names = names(&directory)?;
            let originals: Result<Vec<_>, _> = names
                .iter()
                .map(|name| Original::open(&directory, name))
                .collect();
            match originals {
                Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                // A listing is not made at one moment. Two that agree are.
                Ok(originals) if self::names(&directory)? == names => return Ok(Self(originals)),
                Ok(_) => {}
            }
        }
        let changed = io::Error::other("its files kept changing; try again");
        Err(OpenError::io("copy", &directory.path)(changed))
    }

    /// Writes it as an archive, which [`restore`](super::restore()) takes.
    ///
    /// # Errors
    /// The disk could not be read or `out` not written. What was written so far
    /// is no backup, and is refused as one.
    pub fn write<W: Write>(self, out: W) -> io::Result<W> {
        let mut archive = Archive::new(out);
        for original in self.0 {
            archive.add(&original.name, original.len, original.content)?;
        }
        archive.finish()
    }

    /// How many bytes [`Self::write`] will write.
    pub fn bytes(&self) -> u64 {
        archive::bytes(self.0.iter().map(|original| original.len))
    }
}

impl Original {
    fn open(directory: &Directory, name: &str) -> Result<Self, OpenError> {
        let path = directory.file(name);
        let content = directory.disk.open_read(&path);
        let content = content.map_err(OpenError::io("open", &path))?;
        let len = directory.disk.len(&path);
        Ok(Self {
            name: name.to_owned(),
            len: len.map_err(OpenError::io("measure", &path))?,
            content,
        })
    }
}

/// The files that make up the state, the marker last.
fn names(directory: &Directory) -> Result<Vec<String>, OpenError> {
    let Entries {
        marker,
        segments,
        snapshots,
        ..
    } = directory.entries()?;
    if !marker {
        return Err(OpenError::Absent {
            dir: directory.path.clone(),
        });
    }
    let segments = segments.into_iter().map(segment_name);
    let snapshots = snapshots.into_iter().map(snapshot::name);
    let marker = core::iter::once(MARKER.to_owned());
    Ok(snapshots.chain(segments).chain(marker).collect())
}
