//! The real disk: `std::fs`, with the syncs the log relies on.

use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use super::disk::{Disk, File, Hold, Locking, Room};

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        let parent = match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        self.create_dir(parent)?;
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            other => other,
        }?;
        self.sync_dir(parent)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        file.set_len(0)?;
        Ok(Box::new(RealFile(file)))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Box::new(RealFile(file)))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(fs::File::open(path)?))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn room(&self, dir: &Path) -> io::Result<Room> {
        let disk = rustix::fs::statvfs(dir)?;
        Ok(Room {
            free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
            bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
        })
    }

    fn lock(&self, path: &Path, hold: Hold) -> io::Result<Locking> {
        let write = hold == Hold::Write;
        let mut file = OpenOptions::new()
            .read(true)
            .write(write)
            .create(write)
            .truncate(false)
            .open(path)?;
        let taken = match hold {
            Hold::Write => file.try_lock(),
            Hold::Read => file.try_lock_shared(),
        };
        match taken {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                let owner = fs::read_to_string(path).unwrap_or_default();
                return Ok(Locking::Busy(owner.trim().to_owned()));
            }
        }
        if write {
            file.set_len(0)?;
            writeln!(file, "process {}", std::process::id())?;
        }
        Ok(Locking::Held(Box::new(file)))
    }
}

/// A file opened for appending: every write goes to its end.
struct RealFile(fs::File);

impl File for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}
