//! A disk in memory that fails as disks do, the same way for the same seed.
//!
//! What was written but not synced may be lost in a crash, whole or in part,
//! each write on its own; so may names whose directory was not synced. It can
//! die at any operation, run full, fail a sync and flip a bit.

mod handle;
mod inode;
mod names;
mod state;

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Disk, File, Hold, Locking, Room};
use handle::{FakeFile, FakeLock};
use state::State;

/// What ends a life of the fake disk's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process dies: all that was written stays.
    Killed,
    /// The power goes: what was not synced may be lost.
    PowerLost,
}

/// A disk in memory. Clones share it.
#[derive(Clone)]
pub struct FakeDisk {
    state: Arc<Mutex<State>>,
}

impl FakeDisk {
    /// An empty disk whose accidents follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(seed))),
        }
    }

    /// Dies at the operation that changes something after `operations` more of
    /// them. That one may or may not happen; all after it fail.
    pub fn die_after(&self, operations: u64) {
        let mut state = self.state();
        state.dies_at = Some(state.operations.saturating_add(operations));
    }

    /// Whether it has died.
    pub fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// How many operations that change something there were.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Ends this life: open files and locks are gone, unsynced writes may be
    /// lost, and the disk works again.
    pub fn crash(&self, crash: Crash) {
        self.state().crash(crash);
    }

    /// Holds at most `bytes` in all files from now on; `None` for no limit.
    pub fn limit_room(&self, bytes: Option<u64>) {
        self.state().room = bytes;
    }

    /// How many bytes all files hold.
    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// Fails the next sync of a file: what it should have synced looks written
    /// but never reaches the device, as on Linux.
    pub fn fail_next_sync(&self) {
        self.state().sync_fails = true;
    }

    /// Flips a bit of a file, if it is that long. Returns whether it is.
    pub fn flip(&self, path: &Path, byte: usize, bit: u8) -> bool {
        let mut state = self.state();
        state.inode(path).is_ok_and(|inode| inode.flip(byte, bit))
    }

    /// What a file holds now, synced or not.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let mut state = self.state();
        state.inode(path).ok().map(|inode| inode.content().to_vec())
    }

    /// Puts a file there, durably.
    pub fn place(&self, path: &Path, content: &[u8]) {
        self.state().place(path, content);
    }

    /// All files with what they hold, to compare.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.state().files()
    }

    /// A disk of its own with the same durable files.
    pub fn copy(&self, seed: u64) -> Self {
        let copy = Self::new(seed);
        for (path, content) in self.files() {
            copy.place(&path, &content);
        }
        copy
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock means a test has failed already.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, inode: usize) -> Box<dyn File> {
        let life = self.state().life;
        Box::new(FakeFile {
            disk: self.clone(),
            inode,
            life,
        })
    }
}

impl Disk for FakeDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let step = state.step()?;
        if step.happens {
            state.names.add_dir(dir);
        }
        step.outcome()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.alive()?;
        state.names.list(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let inode = {
            let mut state = self.state();
            let step = state.step()?;
            let inode = state.new_inode();
            if step.happens {
                state.names.link(path, inode)?;
            }
            step.outcome()?;
            inode
        };
        Ok(self.file(inode))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let inode = {
            let state = self.state();
            state.alive()?;
            state.names.find(path)?
        };
        Ok(self.file(inode))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let mut state = self.state();
        state.alive()?;
        let content = state.inode(path)?.content().to_vec();
        Ok(Box::new(Cursor::new(content)))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.state();
        state.alive()?;
        Ok(state.inode(path)?.content().len() as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let step = state.step()?;
        if step.happens {
            state.names.rename(from, to)?;
        }
        step.outcome()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let step = state.step()?;
        if step.happens {
            state.names.unlink(path)?;
        }
        step.outcome()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let step = state.step()?;
        if step.happens {
            state.names.sync(dir);
        }
        step.outcome()
    }

    fn room(&self, _dir: &Path) -> io::Result<Room> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock(&self, path: &Path, hold: Hold) -> io::Result<Locking> {
        let mut state = self.state();
        state.alive()?;
        if hold == Hold::Write && state.names.find(path).is_err() {
            let inode = state.new_inode();
            state.names.link(path, inode)?;
        }
        if !state.locks.insert(path.to_owned()) {
            return Ok(Locking::Busy("process 1".to_owned()));
        }
        let life = state.life;
        Ok(Locking::Held(Box::new(FakeLock {
            disk: self.clone(),
            path: path.to_owned(),
            life,
        })))
    }
}
