//! A rule file as it lies on disk, with the lists that it names: what tells that
//! something has changed.
//!
//! The file is compared by its bytes. Lists may be large, and are compared by what the
//! system says of them: how long they are, when they were last written, and which file
//! it is. A list that is written twice within one tick of the system's clock is still
//! told apart, since content is taken only once it has been the same for a while.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::rules::FILE_LEN_MAX;

/// What was seen of a rule file and its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleContent {
    /// Of the rule file, or as many as say that it is too long.
    pub(super) bytes: Vec<u8>,
    lists: Vec<(PathBuf, Option<Stamp>)>,
}

/// What tells that a file is another, or was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    device: u64,
    inode: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl RuleContent {
    /// The rule file at this path, and these lists, as they are now.
    pub(super) fn look(path: &Path, lists: &[PathBuf]) -> io::Result<Self> {
        let bytes = read_bounded(path)?;
        let lists = lists.iter().map(|list| (list.clone(), stamp(list)));
        let lists = lists.collect();
        Ok(Self { bytes, lists })
    }
}

/// None if it is not there.
fn stamp(path: &Path) -> Option<Stamp> {
    let about = fs::metadata(path).ok()?;
    Some(Stamp {
        len: about.len(),
        device: about.dev(),
        inode: about.ino(),
        written: (about.mtime(), about.mtime_nsec()),
        changed: (about.ctime(), about.ctime_nsec()),
    })
}

/// Reads as much as says that a file is too long, and no more.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path)?;
    file.take(FILE_LEN_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_written_replaced_or_removed_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (rules, list) = (folder.path().join("r"), folder.path().join("l"));
        fs::write(&rules, "rules").unwrap();
        let look = || RuleContent::look(&rules, std::slice::from_ref(&list)).unwrap();
        let missing = look();
        fs::write(&list, "a").unwrap();
        let there = look();
        assert_ne!(missing, there);
        assert_eq!(there, look());
        fs::write(folder.path().join("new"), "b").unwrap();
        fs::rename(folder.path().join("new"), &list).unwrap();
        let replaced = look();
        assert_ne!(there, replaced);
        fs::write(&list, "bc").unwrap();
        assert_ne!(replaced, look());
        fs::remove_file(&list).unwrap();
        assert_eq!(missing, look());
    }
}
