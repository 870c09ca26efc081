//! The real disk behind a gate: it can be held up, full, or broken.

use std::{
    io::{self, Read},
    path::Path,
    sync::{Arc, Condvar, Mutex},
};

use aggregator::store::{Disk, File, Hold, Locking, RealDisk, Room};

#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    held: bool,
    full: bool,
    broken: bool,
    waiting: u32,
}

impl Gate {
    /// From now on, a sync waits.
    pub fn hold(&self) {
        self.change(|state| state.held = true);
    }

    /// From now on, nothing can be written.
    pub fn fill(&self) {
        self.change(|state| state.full = true);
    }

    /// From now on, a sync fails.
    pub fn shatter(&self) {
        self.change(|state| state.broken = true);
    }

    /// Everything is well again.
    pub fn open(&self) {
        self.change(|state| {
            state.held = false;
            state.full = false;
            state.broken = false;
        });
    }

    /// Waits until a sync waits.
    pub fn wait_for_sync(&self) {
        let state = self.state.lock().unwrap();
        drop(
            self.changed
                .wait_while(state, |state| state.waiting == 0)
                .unwrap(),
        );
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn append(&self) -> io::Result<()> {
        match self.state.lock().unwrap().full {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |state| state.held).unwrap();
        state.waiting -= 1;
        match state.broken {
            true => Err(io::Error::other("the device is gone")),
            false => Ok(()),
        }
    }
}

pub struct TestDisk {
    disk: RealDisk,
    gate: Arc<Gate>,
}

struct TestFile {
    file: Box<dyn File>,
    gate: Arc<Gate>,
}

impl TestDisk {
    pub fn new(gate: &Arc<Gate>) -> Self {
        Self {
            disk: RealDisk,
            gate: Arc::clone(gate),
        }
    }

    fn gated(&self, file: Box<dyn File>) -> Box<dyn File> {
        let gate = Arc::clone(&self.gate);
        Box::new(TestFile { file, gate })
    }
}

impl Disk for TestDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.gated(self.disk.create(path)?))
    }
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.gated(self.disk.open_append(path)?))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.disk.open_read(path)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.disk.len(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
    fn room(&self, dir: &Path) -> io::Result<Room> {
        self.disk.room(dir)
    }
    fn lock(&self, path: &Path, hold: Hold) -> io::Result<Locking> {
        self.disk.lock(path, hold)
    }
}

impl File for TestFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.gate.append()?;
        self.file.append(bytes)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        self.gate.sync()?;
        self.file.sync_data()
    }
    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}
