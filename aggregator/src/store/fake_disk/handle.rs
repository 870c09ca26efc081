//! Open files and locks of the fake disk; those of an earlier life are dead.

use std::io;
use std::path::PathBuf;

use super::FakeDisk;
use super::state::died;
use crate::store::disk::File;

pub(super) struct FakeFile {
    pub(super) disk: FakeDisk,
    pub(super) inode: usize,
    pub(super) life: u64,
}

impl File for FakeFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.same_life(self.life)?;
        let step = state.step()?;
        let room = state.room_left().min(bytes.len());
        let len = if step.happens {
            room
        } else {
            state.random.below(room + 1)
        };
        let part = bytes.get(..len).unwrap_or_default();
        state.open_inode(self.inode)?.append(part);
        step.outcome()?;
        if len < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn sync_data(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.same_life(self.life)?;
        let step = state.step()?;
        let fails = core::mem::take(&mut state.sync_fails);
        let inode = state.open_inode(self.inode)?;
        if fails {
            inode.forget_unsynced();
            return Err(io::Error::other("the device failed"));
        }
        if step.happens {
            inode.sync();
        }
        step.outcome()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.same_life(self.life)?;
        let step = state.step()?;
        if step.happens {
            let len = usize::try_from(len).map_err(|_| died())?;
            state.open_inode(self.inode)?.set_len(len);
        }
        step.outcome()
    }
}

pub(super) struct FakeLock {
    pub(super) disk: FakeDisk,
    pub(super) path: PathBuf,
    pub(super) life: u64,
}

impl Drop for FakeLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.life == self.life {
            state.locks.remove(&self.path);
        }
    }
}
