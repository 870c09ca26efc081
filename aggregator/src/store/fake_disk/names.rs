//! The names of fake files: as they are, and as the device has them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::state::Random;

type Table = BTreeMap<PathBuf, usize>;

#[derive(Default)]
pub(super) struct Names {
    dirs: BTreeSet<PathBuf>,
    durable: Table,
    current: Table,
    unsynced: Vec<Change>,
}

/// A change of names within one directory; each happens whole or not at all.
struct Change {
    dir: PathBuf,
    gone: Option<PathBuf>,
    new: Option<(PathBuf, usize)>,
}

impl Change {
    fn apply(&self, table: &mut Table) {
        if let Some(gone) = &self.gone {
            table.remove(gone);
        }
        if let Some((path, inode)) = &self.new {
            table.insert(path.clone(), *inode);
        }
    }
}

impl Names {
    /// Directories are durable at once, as `create_dir` promises.
    pub(super) fn add_dir(&mut self, dir: &Path) {
        self.dirs.insert(dir.to_owned());
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        if !self.dirs.contains(dir) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let here = self.current.keys().filter(|path| parent(path) == dir);
        Ok(here
            .filter_map(|path| path.file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect())
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<usize> {
        let found = self.current.get(path).copied();
        found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&PathBuf, usize)> {
        self.current.iter().map(|(path, inode)| (path, *inode))
    }

    pub(super) fn link(&mut self, path: &Path, inode: usize) -> io::Result<()> {
        if !self.dirs.contains(&parent(path)) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        self.change(path, None, Some((path.to_owned(), inode)));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        let (gone, new) = (from.to_owned(), (to.to_owned(), inode));
        self.change(to, Some(gone), Some(new));
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        self.find(path)?;
        self.change(path, Some(path.to_owned()), None);
        Ok(())
    }

    fn change(&mut self, path: &Path, gone: Option<PathBuf>, new: Option<(PathBuf, usize)>) {
        let dir = parent(path);
        let change = Change { dir, gone, new };
        change.apply(&mut self.current);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self, dir: &Path) {
        let changes = core::mem::take(&mut self.unsynced);
        for change in changes {
            if change.dir == dir {
                change.apply(&mut self.durable);
            } else {
                self.unsynced.push(change);
            }
        }
    }

    /// The power goes: each unsynced change happened or not.
    pub(super) fn lose(&mut self, random: &mut Random) {
        for change in core::mem::take(&mut self.unsynced) {
            if random.below(2) == 0 {
                change.apply(&mut self.durable);
            }
        }
        self.current.clone_from(&self.durable);
    }

    /// Puts a name there durably.
    pub(super) fn place(&mut self, path: &Path, inode: usize) {
        self.dirs.insert(parent(path));
        self.durable.insert(path.to_owned(), inode);
        self.current.insert(path.to_owned(), inode);
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}
