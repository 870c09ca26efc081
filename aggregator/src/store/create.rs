//! Making a file that is whole from the moment it has its name.

use std::io;
use std::path::Path;

use super::disk::{Disk, File};

/// Why a file could not be made.
pub(super) enum CreateError {
    /// It does not have its name; trying again is safe.
    Write(io::Error),
    /// It has its name, but perhaps not after a crash.
    Sync(io::Error),
}

impl CreateError {
    pub(super) fn into_io(self) -> io::Error {
        match self {
            Self::Write(error) | Self::Sync(error) => error,
        }
    }
}

/// The name a file has until it is whole.
pub(super) fn unfinished(name: &str) -> String {
    format!("{name}.tmp")
}

/// Makes `name` in `dir`, holding `content`, durably; gives it open to append.
pub(super) fn create_whole(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    content: &[u8],
) -> Result<Box<dyn File>, CreateError> {
    let tmp = dir.join(unfinished(name));
    let write = || {
        let mut file = disk.create(&tmp)?;
        file.append(content)?;
        file.sync_data()?;
        Ok(file)
    };
    match write() {
        Ok(file) => {
            name_whole(disk, dir, &tmp, &dir.join(name))?;
            Ok(file)
        }
        Err(error) => {
            // Best effort: a leftover is made anew, or removed by the next start.
            let _ = disk.remove(&tmp);
            Err(CreateError::Write(error))
        }
    }
}

/// Gives the synced file `tmp` its name, durably.
pub(super) fn name_whole(
    disk: &dyn Disk,
    dir: &Path,
    tmp: &Path,
    path: &Path,
) -> Result<(), CreateError> {
    disk.rename(tmp, path).map_err(CreateError::Write)?;
    disk.sync_dir(dir).map_err(CreateError::Sync)
}
