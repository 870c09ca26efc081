//! What the handles of one fake disk share, and when it dies.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::Crash;
use super::inode::Inode;
use super::names::Names;

pub(super) struct State {
    pub(super) names: Names,
    inodes: Vec<Inode>,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) life: u64,
    pub(super) operations: u64,
    pub(super) dies_at: Option<u64>,
    pub(super) dead: bool,
    pub(super) room: Option<u64>,
    pub(super) sync_fails: bool,
    pub(super) random: Random,
}

/// One operation: whether it takes effect, and whether it can tell.
pub(super) struct Step {
    pub(super) happens: bool,
    dies: bool,
}

impl Step {
    pub(super) fn outcome(&self) -> io::Result<()> {
        if self.dies { Err(died()) } else { Ok(()) }
    }
}

pub(super) fn died() -> io::Error {
    io::Error::other("the fake disk died")
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            names: Names::default(),
            inodes: Vec::new(),
            locks: BTreeSet::new(),
            life: 0,
            operations: 0,
            dies_at: None,
            dead: false,
            room: None,
            sync_fails: false,
            random: Random(seed),
        }
    }

    pub(super) fn alive(&self) -> io::Result<()> {
        if self.dead { Err(died()) } else { Ok(()) }
    }

    pub(super) fn same_life(&self, life: u64) -> io::Result<()> {
        if self.life == life {
            Ok(())
        } else {
            Err(died())
        }
    }

    pub(super) fn step(&mut self) -> io::Result<Step> {
        self.alive()?;
        let dies = self.dies_at == Some(self.operations);
        self.operations += 1;
        self.dead = dies;
        let happens = !dies || self.random.below(2) == 0;
        Ok(Step { happens, dies })
    }

    pub(super) fn crash(&mut self, crash: Crash) {
        if crash == Crash::PowerLost {
            self.names.lose(&mut self.random);
            for inode in &mut self.inodes {
                inode.lose(&mut self.random);
            }
        }
        self.locks.clear();
        self.life += 1;
        self.dead = false;
        self.dies_at = None;
        self.sync_fails = false;
    }

    pub(super) fn new_inode(&mut self) -> usize {
        self.inodes.push(Inode::default());
        self.inodes.len() - 1
    }

    pub(super) fn open_inode(&mut self, inode: usize) -> io::Result<&mut Inode> {
        self.inodes.get_mut(inode).ok_or_else(died)
    }

    pub(super) fn inode(&mut self, path: &Path) -> io::Result<&mut Inode> {
        let inode = self.names.find(path)?;
        self.open_inode(inode)
    }

    pub(super) fn place(&mut self, path: &Path, content: &[u8]) {
        self.inodes.push(Inode::durable(content));
        self.names.place(path, self.inodes.len() - 1);
    }

    pub(super) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let content = |inode: usize| self.inodes.get(inode).map(Inode::content);
        self.names
            .all()
            .map(|(path, inode)| (path.clone(), content(inode).unwrap_or_default().to_vec()))
            .collect()
    }

    pub(super) fn used(&self) -> u64 {
        let sizes = self
            .names
            .all()
            .filter_map(|(_, inode)| self.inodes.get(inode));
        sizes.map(|inode| inode.content().len() as u64).sum()
    }

    pub(super) fn room_left(&self) -> usize {
        let left = self.room.map(|room| room.saturating_sub(self.used()));
        left.map_or(usize::MAX - 1, |left| {
            usize::try_from(left).unwrap_or(usize::MAX - 1)
        })
    }
}

/// A small generator of numbers that follow from a seed (splitmix64).
pub(super) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap_or_default()
    }
}
