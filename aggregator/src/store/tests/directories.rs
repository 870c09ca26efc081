//! Which directories are taken, and which are refused and left as they were.

use std::sync::Arc;

use super::model::{commit_each, dir, files, open, refusal};
use crate::store::{Crash, Disk, FakeDisk, OpenError, verify};

#[test]
fn a_directory_that_holds_something_else_is_refused_and_untouched() {
    for name in ["notes.txt", "log-1.seg", "other.tmp"] {
        let disk = FakeDisk::new(1);
        disk.place(&dir().join(name), b"precious");
        let before = disk.files();
        match refusal(&disk) {
            OpenError::NotADataDirectory { found, .. } => assert_eq!(found, name),
            other => panic!("{other}"),
        }
        assert_eq!(disk.files(), before);
    }
}

#[test]
fn a_fresh_volume_is_taken() {
    let disk = FakeDisk::new(1);
    disk.place(&dir().join("lost+found"), b"");
    assert!(open(&disk).unwrap().1.created);
}

#[test]
fn a_log_whose_marker_is_gone_is_refused_and_not_begun_anew() {
    let disk = FakeDisk::new(1);
    commit_each(&mut open(&disk).unwrap().0, 0..1);
    disk.remove(&dir().join("weir-data")).unwrap();
    assert!(matches!(
        refusal(&disk),
        OpenError::NotADataDirectory { .. }
    ));
    assert_eq!(files(&disk, ".seg").len(), 1);
}

#[test]
fn a_crash_at_any_moment_of_making_a_directory_leaves_one_that_can_be_made() {
    for seed in 0..40 {
        for moment in 0..12 {
            for crash in [Crash::Killed, Crash::PowerLost] {
                let disk = FakeDisk::new(seed);
                disk.die_after(moment);
                let opened = open(&disk).is_ok();
                assert!(opened || disk.is_dead());
                disk.crash(crash);
                let (mut log, _, _) = open(&disk).unwrap();
                commit_each(&mut log, 0..1);
                disk.crash(Crash::PowerLost);
                assert_eq!(open(&disk).unwrap().2.len(), 1);
                assert!(files(&disk, ".tmp").is_empty());
            }
        }
    }
}

#[test]
fn a_later_format_is_refused_with_both_versions() {
    for part in ["weir-data", ".seg", ".snap"] {
        let disk = FakeDisk::new(1);
        let (mut log, _, _) = open(&disk).unwrap();
        let history = commit_each(&mut log, 0..3);
        super::model::snapshot(&mut log, &history);
        drop(log);
        // The version follows a magic of 8 bytes.
        disk.flip(&files(&disk, part)[0], 8, 2);
        let before = disk.files();
        match refusal(&disk) {
            OpenError::NewerFormat { found, known, .. } => assert_eq!((found, known), (6, 2)),
            other => panic!("{other}"),
        }
        assert_eq!(disk.files(), before);
    }
}

#[test]
fn verifying_reads_everything_and_changes_nothing() {
    let disk = FakeDisk::new(1);
    let shared = || Arc::new(disk.clone());
    assert!(matches!(verify(shared(), dir()), Err(OpenError::Io { .. })));
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..9);
    let locked = verify(shared(), dir());
    assert!(matches!(locked, Err(OpenError::Locked { .. })));
    super::model::snapshot(&mut log, &history);
    commit_each(&mut log, 9..12);
    drop(log);
    let (before, operations) = (disk.files(), disk.operations());
    let report = verify(shared(), dir()).unwrap();
    assert_eq!((report.records, report.last.number()), (3, 12));
    assert_eq!(report.snapshot_taken_at_ms, Some(7));
    assert_eq!((disk.files(), disk.operations()), (before, operations));
    disk.remove(&dir().join("weir-data")).unwrap();
    let absent = verify(shared(), dir());
    assert!(matches!(absent, Err(OpenError::Absent { .. })));
}
