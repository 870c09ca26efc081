//! Torn tails are cut; damage and gaps are refused with file and place.

use super::model::{commit_each, damage, files, open, refusal};
use crate::store::{Crash, Disk, Durability, FakeDisk, OpenError, Position};

/// A log of twelve records over several segments, with its history.
fn long_log() -> (FakeDisk, Vec<super::model::Record>) {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..20);
    assert!(log.segments() > 2);
    drop(log);
    (disk, history)
}

#[test]
fn a_last_batch_cut_at_any_byte_is_dropped_and_reported() {
    let disk = FakeDisk::new(1);
    let history = commit_each(&mut open(&disk).unwrap().0, 0..3);
    let path = files(&disk, ".seg").remove(0);
    let whole = disk.content(&path).unwrap();
    let batch = 36 + 4 + 20;
    for cut in 1..=batch {
        let disk = disk.copy(1);
        disk.place(&path, &whole[..whole.len() - cut]);
        let (mut log, report, recovered) = open(&disk).unwrap();
        assert_eq!(recovered, history[..2]);
        assert_eq!(report.torn_bytes, (batch - cut) as u64);
        commit_each(&mut log, 9..10);
        drop(log);
        let (_, report, recovered) = open(&disk).unwrap();
        assert_eq!((recovered.len(), report.torn_bytes), (3, 0));
    }
}

#[test]
fn a_bad_batch_before_a_good_one_is_refused_with_file_and_place() {
    let disk = FakeDisk::new(1);
    commit_each(&mut open(&disk).unwrap().0, 0..4);
    let path = files(&disk, ".seg").remove(0);
    disk.flip(&path, 32 + 60 + 50, 2);
    let before = disk.files();
    let damage = damage(&disk);
    assert_eq!((&damage.file, damage.offset), (&path, 32 + 60));
    assert_eq!(
        damage.to_string(),
        "data/log-00000000000000000001.seg is damaged at byte 92: expected a batch that begins \
         with record 2, found records whose checksum is wrong; restore the data directory from a \
         backup or another replica, or move it away to begin with empty counters"
    );
    assert_eq!(disk.files(), before);
}

#[test]
fn a_torn_segment_that_is_not_the_last_is_refused() {
    let (disk, _) = long_log();
    let path = files(&disk, ".seg").remove(0);
    let whole = disk.content(&path).unwrap();
    disk.place(&path, &whole[..whole.len() - 1]);
    assert_eq!(damage(&disk).file, path);
}

#[test]
fn a_missing_segment_is_refused_by_name() {
    let count = files(&long_log().0, ".seg").len();
    for gone in 0..count - 1 {
        let (disk, _) = long_log();
        let path = files(&disk, ".seg").remove(gone);
        disk.remove(&path).unwrap();
        match refusal(&disk) {
            OpenError::MissingSegment { file, .. } => assert_eq!(file, path),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_log_without_any_segment_is_refused() {
    let (disk, _) = long_log();
    for path in files(&disk, ".seg") {
        disk.remove(&path).unwrap();
    }
    assert!(matches!(refusal(&disk), OpenError::MissingSegment { .. }));
}

#[test]
fn a_segment_of_another_directory_is_refused() {
    let (disk, _) = long_log();
    let (other, _) = long_log();
    let path = files(&disk, ".seg").pop().unwrap();
    disk.place(&path, &other.content(&path).unwrap());
    assert!(damage(&disk).found.contains("another data directory"));
}

#[test]
fn a_batch_copied_to_another_place_is_not_taken_for_one() {
    let disk = FakeDisk::new(1);
    let history = commit_each(&mut open(&disk).unwrap().0, 0..2);
    let path = files(&disk, ".seg").remove(0);
    let mut bytes = disk.content(&path).unwrap();
    bytes.extend_from_within(32..);
    disk.place(&path, &bytes);
    let (_, report, recovered) = open(&disk).unwrap();
    assert_eq!((recovered, report.torn_bytes), (history, 120));
}

/// Pages reach the device in any order, so a hole may come before what follows.
#[test]
fn a_hole_in_what_was_never_synced_is_cut_and_not_refused() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..1);
    for _ in 0..3 {
        log.append(&[&[7; 20]]).unwrap();
        log.commit(Durability::Written).unwrap();
    }
    drop(log);
    let path = files(&disk, ".seg").remove(0);
    disk.flip(&path, 32 + 60 + 50, 2);
    let (log, report, recovered) = open(&disk).unwrap();
    assert_eq!((recovered, report.torn_bytes), (history, 180));
    assert_eq!(log.last(), Position::new(1));
}

/// A restart answers resends of what it recovered as done, so it must be.
#[test]
fn what_a_restart_recovers_is_durable_even_if_it_was_only_written() {
    for seed in 0..20 {
        let disk = FakeDisk::new(seed);
        let (mut log, _, _) = open(&disk).unwrap();
        log.append(&[b"one"]).unwrap();
        log.commit(Durability::Written).unwrap();
        disk.crash(Crash::Killed);
        let (_log, _, recovered) = open(&disk).unwrap();
        assert_eq!(recovered.len(), 1);
        disk.crash(Crash::PowerLost);
        assert_eq!(open(&disk).unwrap().2.len(), 1);
    }
}
