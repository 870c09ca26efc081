//! Snapshots: they replace the log before them, and only once they are whole.

use super::model::{SHARDS, commit_each, damage, files, open, refusal, shard_bytes, snapshot};
use crate::store::{
    Crash, Disk, Durability, FakeDisk, Finished, Log, OpenError, Pending, Position, Publication,
    Published, SealedSnapshot, SnapshotError, SnapshotWriter,
};

#[test]
fn a_snapshot_replaces_the_segments_before_it() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let mut history = commit_each(&mut log, 0..20);
    let before = log.bytes_since_snapshot();
    snapshot(&mut log, &history);
    assert!(log.bytes_since_snapshot() < before);
    history.extend(commit_each(&mut log, 20..22));
    let all = commit_each(&mut log, 22..24);
    history.extend(all);
    snapshot(&mut log, &history);
    assert_eq!(files(&disk, ".snap").len(), 1);
    assert!(log.segments() <= 2);
    drop(log);
    let (_, report, recovered) = open(&disk).unwrap();
    assert_eq!(recovered, history);
    assert_eq!(report.shards, u64::from(SHARDS));
    assert_eq!(report.records, 0);
}

#[test]
fn shards_may_be_taken_at_different_positions_while_the_log_goes_on() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let mut history = commit_each(&mut log, 0..5);
    let mut writer = log.begin_snapshot(9).unwrap();
    for shard in 0..SHARDS {
        let bytes = shard_bytes(&history, shard);
        writer.shard(shard, log.last(), &bytes).unwrap();
        let more = u8::try_from(history.len()).unwrap();
        history.extend(commit_each(&mut log, more..more + 9));
    }
    let _ = log.finish_snapshot(writer).unwrap();
    drop(log);
    let (_, report, recovered) = open(&disk).unwrap();
    assert_eq!(recovered, history);
    assert_eq!(report.records, 27, "all after the smallest position");
}

#[test]
fn a_snapshot_waits_until_the_log_is_synced_as_far_as_it_goes() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    log.append(&[b"one"]).unwrap();
    let mut writer = log.begin_snapshot(0).unwrap();
    writer.shard(0, log.last(), b"").unwrap();
    let sealed = writer.seal().unwrap();
    assert_eq!(sealed.contains(), Position::new(1));
    let Err(sealed) = log.publish(sealed) else {
        panic!("published ahead of the log");
    };
    log.commit(Durability::Fsynced).unwrap();
    let published = log.publish(sealed).ok().unwrap().run().unwrap();
    log.finish_publication(&published);
}

#[test]
fn only_one_snapshot_is_under_way_and_one_that_is_dropped_leaves_nothing() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let mut writer = log.begin_snapshot(0).unwrap();
    writer.shard(0, log.last(), &vec![1; 1 << 20]).unwrap();
    assert_eq!(files(&disk, ".tmp").len(), 1);
    let refused = log.begin_snapshot(0);
    assert!(matches!(refused, Err(SnapshotError::UnderWay)));
    drop(writer);
    assert!(files(&disk, ".tmp").is_empty());
    let writer = log.begin_snapshot(0).unwrap();
    assert!(matches!(writer.seal(), Err(SnapshotError::Empty)));
}

#[test]
fn a_shard_that_needs_records_no_longer_there_is_refused() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let mut history = commit_each(&mut log, 0..20);
    snapshot(&mut log, &history);
    history.extend(commit_each(&mut log, 20..21));
    snapshot(&mut log, &history);
    let mut writer = log.begin_snapshot(0).unwrap();
    let stale = writer.shard(0, Position::new(3), b"");
    assert!(matches!(stale, Err(SnapshotError::BehindLog { .. })));
    let mut writer = {
        drop(writer);
        log.begin_snapshot(0).unwrap()
    };
    let ahead = Position::new(99);
    writer.shard(0, ahead, b"").unwrap();
    let ahead = log.finish_snapshot(writer);
    assert!(matches!(ahead, Err(SnapshotError::AheadOfLog { .. })));
}

#[test]
fn a_full_disk_ends_the_snapshot_and_not_the_log() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..9);
    disk.limit_room(Some(disk.used() + 70));
    let mut writer = log.begin_snapshot(0).unwrap();
    writer.shard(0, log.last(), &[1; 100]).unwrap();
    assert!(log.finish_snapshot(writer).is_err());
    assert!(files(&disk, ".tmp").is_empty(), "the room is given back");
    disk.limit_room(None);
    snapshot(&mut log, &history);
    drop(log);
    assert_eq!(open(&disk).unwrap().2, history);
}

#[test]
fn a_damaged_snapshot_gives_way_to_a_log_that_is_still_complete() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..9);
    drop(log);
    let complete = disk.copy(1);
    let (mut log, _, _) = open(&disk).unwrap();
    snapshot(&mut log, &history);
    let path = files(&disk, ".snap").remove(0);
    complete.place(&path, &disk.content(&path).unwrap());
    complete.flip(&path, 60, 1);
    let (_, report, recovered) = open(&complete).unwrap();
    assert_eq!(recovered, history);
    assert_eq!(report.damaged_snapshots[0].file, path);
}

#[test]
fn a_damaged_snapshot_whose_log_is_gone_is_refused_and_everything_stays() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let mut history = commit_each(&mut log, 0..20);
    snapshot(&mut log, &history);
    history.extend(commit_each(&mut log, 20..30));
    snapshot(&mut log, &history);
    drop(log);
    let path = files(&disk, ".snap").remove(0);
    disk.flip(&path, 100, 0);
    let before = disk.files();
    assert_eq!(damage(&disk).file, path);
    assert_eq!(disk.files(), before);
}

#[test]
fn a_snapshot_that_lost_its_tail_is_never_taken_for_whole() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..20);
    snapshot(&mut log, &history);
    commit_each(&mut log, 20..21);
    drop(log);
    let path = files(&disk, ".snap").remove(0);
    let whole = disk.content(&path).unwrap();
    for len in 0..whole.len() {
        disk.place(&path, &whole[..len]);
        assert_eq!(damage(&disk).file, path, "cut to {len}");
    }
    let mut longer = whole;
    longer.push(0);
    disk.place(&path, &longer);
    assert_eq!(damage(&disk).expected, "nothing after the footer");
}

#[test]
fn a_log_that_ends_before_its_snapshot_is_refused() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..2);
    snapshot(&mut log, &history);
    drop(log);
    let path = files(&disk, ".seg").remove(0);
    let bytes = disk.content(&path).unwrap();
    disk.place(&path, &bytes[..bytes.len() - 1]);
    assert!(damage(&disk).expected.contains("the snapshot contains"));
    disk.remove(&path).unwrap();
    assert!(matches!(refusal(&disk), OpenError::MissingSegment { .. }));
}

/// A snapshot is named after the last record when it was begun. One begun after
/// a record that a crash then took would seem newer than its successors.
#[test]
fn a_snapshot_is_not_published_before_the_record_it_is_named_after() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..2);
    let contains = log.last();
    log.append(&[b"uncommitted"]).unwrap();
    let mut writer = log.begin_snapshot(0).unwrap();
    for shard in 0..SHARDS {
        let bytes = shard_bytes(&history, shard);
        writer.shard(shard, contains, &bytes).unwrap();
    }
    assert!(log.publish(writer.seal().unwrap()).is_err());
    disk.crash(Crash::PowerLost);
    open(&disk).unwrap();
}

/// Closing an empty log left a batch without records in its first segment; the
/// next one then got the same name, and removing the first took the second.
#[test]
fn a_segment_that_holds_only_a_closing_batch_is_not_followed_by_its_namesake() {
    let disk = FakeDisk::new(1);
    open(&disk).unwrap().0.close().unwrap();
    let (mut log, _, _) = open(&disk).unwrap();
    let mut writer = log.begin_snapshot(0).unwrap();
    for shard in 0..SHARDS {
        writer.shard(shard, log.last(), b"").unwrap();
    }
    let history = commit_each(&mut log, 0..1);
    let _ = log.finish_snapshot(writer).unwrap();
    drop(log);
    assert_eq!(open(&disk).unwrap().2, history);
}

#[test]
fn everything_that_waits_for_the_disk_may_do_so_on_a_thread_of_its_own() {
    fn sent<T: Send + 'static>() {}
    sent::<(Log, Pending, Finished)>();
    sent::<(SnapshotWriter, SealedSnapshot, Publication, Published)>();
}
