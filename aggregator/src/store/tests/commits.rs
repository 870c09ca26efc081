//! Appending and committing: limits, full disks, failed syncs, split commits.

use super::model::{commit_each, damage, dir, files, open, refusal, small};
use crate::store::{
    AppendError, CommitError, Crash, Durability, FakeDisk, Log, OpenError, Position,
};

#[test]
fn the_first_record_is_1_and_each_is_one_more() {
    let disk = FakeDisk::new(1);
    let (mut log, report, _) = open(&disk).unwrap();
    assert!(report.created);
    assert_eq!(log.last(), Position::START);
    let positions: Vec<_> = commit_each(&mut log, 0..3).iter().map(|r| r.0).collect();
    assert_eq!(positions, [1, 2, 3].map(Position::new));
}

#[test]
fn a_record_given_in_parts_comes_back_in_one() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    log.append(&[b"ab", b"", b"c"]).unwrap();
    log.append(&[]).unwrap();
    log.commit(Durability::Fsynced).unwrap();
    drop(log);
    let (_, report, history) = open(&disk).unwrap();
    let records: Vec<_> = history.iter().map(|record| record.1.as_slice()).collect();
    assert_eq!(records, [b"abc".as_slice(), b""]);
    assert_eq!((report.records, report.record_bytes), (2, 3));
}

#[test]
fn a_record_over_the_limit_is_refused_and_takes_no_position() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let refused = log.append(&[&[0; 150], &[0; 51]]).unwrap_err();
    assert!(matches!(
        refused,
        AppendError::RecordTooLarge {
            bytes: 201,
            max: 200
        }
    ));
    assert_eq!(log.append(&[&[0; 200]]).unwrap(), Position::new(1));
}

#[test]
fn a_full_buffer_refuses_until_a_commit_has_emptied_it() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    while log.append(&[&[0; 100]]).is_ok() {}
    assert!(log.waiting_bytes() <= u64::from(small().buffer_bytes_max));
    let pending = log.start_commit(Durability::Fsynced).unwrap().unwrap();
    let refused = log.append(&[&[0; 100]]);
    assert!(matches!(refused, Err(AppendError::BufferFull { .. })));
    log.finish_commit(pending.run()).unwrap();
    log.append(&[&[0; 100]]).unwrap();
}

#[test]
fn appends_go_on_while_a_commit_runs_elsewhere() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    log.append(&[b"one"]).unwrap();
    let pending = log.start_commit(Durability::Fsynced).unwrap().unwrap();
    let running = std::thread::spawn(move || pending.run());
    log.append(&[b"two"]).unwrap();
    let refused = log.start_commit(Durability::Fsynced);
    assert!(matches!(refused, Err(CommitError::InFlight)));
    let done = log.finish_commit(running.join().unwrap()).unwrap();
    assert_eq!(done, Position::new(1));
    assert_eq!(log.commit(Durability::Fsynced).unwrap(), Position::new(2));
}

#[test]
fn a_commit_of_nothing_touches_nothing() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    commit_each(&mut log, 0..1);
    let before = disk.operations();
    assert_eq!(log.commit(Durability::Fsynced).unwrap(), Position::new(1));
    assert_eq!(disk.operations(), before);
}

#[test]
fn what_was_only_written_is_synced_when_a_later_commit_asks_for_it() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    log.append(&[b"one"]).unwrap();
    log.commit(Durability::Written).unwrap();
    assert_eq!(log.durable(Durability::Fsynced), Position::START);
    assert_eq!(log.commit(Durability::Fsynced).unwrap(), Position::new(1));
    disk.crash(Crash::PowerLost);
    assert_eq!(open(&disk).unwrap().2.len(), 1);
}

/// At every amount of room, so that the write of a batch, of a new segment's
/// header and of nothing at all each meet the end.
#[test]
fn a_full_disk_fails_the_commit_and_loses_nothing_once_there_is_room() {
    for room in 0..400 {
        let disk = FakeDisk::new(room);
        let (mut log, _, _) = open(&disk).unwrap();
        let mut history = commit_each(&mut log, 0..4);
        disk.limit_room(Some(disk.used() + room));
        let mut failures = 0;
        for number in 4..12 {
            let record = vec![number; 20];
            history.push((log.append(&[&record]).unwrap(), record));
            if let Err(error) = log.commit(Durability::Fsynced) {
                assert!(matches!(error, CommitError::Full { .. }), "{error}");
                assert!(error.is_transient());
                failures += 1;
            }
        }
        assert!(failures > 0, "room {room} was enough");
        disk.limit_room(None);
        assert_eq!(log.commit(Durability::Fsynced).unwrap(), Position::new(12));
        disk.crash(Crash::PowerLost);
        let (_, report, recovered) = open(&disk).unwrap();
        assert_eq!(recovered, history);
        assert_eq!(report.torn_bytes, 0, "a part of a batch was left");
    }
}

#[test]
fn records_appended_while_a_commit_met_a_full_disk_follow_those_it_held() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    log.append(&[b"one"]).unwrap();
    disk.limit_room(Some(disk.used() + 9));
    let pending = log.start_commit(Durability::Fsynced).unwrap().unwrap();
    log.append(&[b"two"]).unwrap();
    let full = log.finish_commit(pending.run()).unwrap_err();
    assert!(full.is_transient());
    disk.limit_room(None);
    assert_eq!(log.commit(Durability::Fsynced).unwrap(), Position::new(2));
    drop(log);
    let history = open(&disk).unwrap().2;
    let records: Vec<_> = history.iter().map(|record| record.1.as_slice()).collect();
    assert_eq!(records, [b"one", b"two"]);
}

#[test]
fn a_failed_sync_ends_the_log_and_its_records_are_not_believed_later() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let history = commit_each(&mut log, 0..2);
    log.append(&[b"doubtful"]).unwrap();
    disk.fail_next_sync();
    let failed = log.commit(Durability::Fsynced).unwrap_err();
    assert!(matches!(failed, CommitError::Sync { .. }) && !failed.is_transient());
    let again = log.commit(Durability::Fsynced).unwrap_err();
    assert!(matches!(again, CommitError::Failed), "{again}");
    assert!(matches!(log.append(&[b"more"]), Err(AppendError::Failed)));
    assert_eq!(log.durable(Durability::Written), Position::new(2));
    drop(log);
    // The page cache may still show the record; a restart must not serve it,
    // since the device may never have had it.
    let (log, _, recovered) = open(&disk).unwrap();
    assert_eq!(recovered, history);
    assert_eq!(log.last(), Position::new(2));
}

#[test]
fn damage_to_the_last_batch_of_a_closed_log_is_not_taken_for_a_torn_tail() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    commit_each(&mut log, 0..1);
    assert_eq!(log.close().unwrap(), Position::new(1));
    assert_eq!(open(&disk).unwrap().2.len(), 1);
    disk.flip(&files(&disk, ".seg")[0], 80, 3);
    assert_eq!(damage(&disk).offset, 32);
}

#[test]
fn a_second_opener_is_told_who_has_the_directory() {
    let disk = FakeDisk::new(1);
    let (log, _, _) = open(&disk).unwrap();
    match refusal(&disk) {
        OpenError::Locked { dir: locked, owner } => {
            assert_eq!((locked.as_path(), owner.as_str()), (dir(), "process 1"));
        }
        other => panic!("{other}"),
    }
    drop::<Log>(log);
    open(&disk).unwrap();
}
