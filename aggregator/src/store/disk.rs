//! The file operations the log needs, and no more.
//!
//! They are a trait so that a crash test is one small fake disk. Nothing is
//! promised of a write before `sync_data` of its file, nor of a name before
//! `sync_dir` of its directory.

use core::any::Any;
use std::io::{self, Read};
use std::path::Path;

/// A disk that holds data directories.
pub trait Disk: Send + Sync + 'static {
    /// Makes `dir` and what is missing above it, durably. One that exists is
    /// left alone.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// The names in `dir`, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes an empty file, in place of one that was there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Opens a file that exists, to write after its end.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Opens a file that exists, to read it from its beginning.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// How many bytes a file holds.
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Gives a file another name at once, in place of one that had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// What room there is where `dir` is.
    fn room(&self, dir: &Path) -> io::Result<Room>;

    /// Takes the lock at `path` without waiting.
    fn lock(&self, path: &Path, hold: Hold) -> io::Result<Locking>;
}

/// A file open for writing at its end.
pub trait File: Send {
    /// Writes all of `bytes` after the end. After an error a part of them may
    /// have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything written so far durable, the length included.
    fn sync_data(&mut self) -> io::Result<()>;

    /// Cuts the file to `len` bytes; the next append goes there.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
}

/// What room a disk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that this process may still write.
    pub free_bytes: u64,
    /// How large it is, in bytes.
    pub bytes: u64,
}

/// What a lock is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// To write: the lock file is made if need be and names this process.
    Write,
    /// To read: the lock file must exist and stays as it is.
    Read,
}

/// A lock, held until it is dropped or the process ends.
pub type Lock = Box<dyn Any + Send + Sync>;

/// The answer to an attempt to lock.
pub enum Locking {
    /// It is ours.
    Held(Lock),
    /// Someone else has it: what the lock file says of them.
    Busy(String),
}
