//! The same on a real file system.

use std::sync::Arc;

use super::model::{Model, commit_each, shard_bytes, small};
use crate::store::{Durability, Log, OpenError, RealDisk, verify};

#[test]
fn a_log_on_a_real_disk_comes_back_whole() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("deep/data");
    let open = || {
        let mut model = Model::new();
        let opened = Log::open(Arc::new(RealDisk), &dir, small(), &mut model);
        opened.map(|(log, report)| (log, report, model.history()))
    };
    let (mut log, report, _) = open().unwrap();
    assert!(report.created);
    let mut history = commit_each(&mut log, 0..20);
    let mut writer = log.begin_snapshot(5).unwrap();
    for shard in 0..3 {
        let bytes = shard_bytes(&history, shard);
        writer.shard(shard, log.last(), &bytes).unwrap();
    }
    let _ = log.finish_snapshot(writer).unwrap();
    history.extend(commit_each(&mut log, 20..30));
    match open().map(|_| ()).unwrap_err() {
        OpenError::Locked { owner, .. } => {
            assert_eq!(owner, format!("process {}", std::process::id()));
        }
        other => panic!("{other}"),
    }
    drop(log);
    let report = verify(Arc::new(RealDisk), &dir).unwrap();
    assert_eq!((report.records, report.last.number()), (10, 30));
    let (mut log, report, recovered) = open().unwrap();
    assert_eq!(recovered, history);
    assert_eq!(report.records, 10);
    log.append(&[b"last"]).unwrap();
    log.commit(Durability::Written).unwrap();
    log.close().unwrap();
    assert_eq!(open().unwrap().2.len(), 31);
}

#[test]
fn a_torn_tail_on_a_real_disk_is_cut_and_the_log_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let open = || {
        let mut model = Model::new();
        let opened = Log::open(Arc::new(RealDisk), root.path(), small(), &mut model);
        opened.map(|(log, report)| (log, report, model.history()))
    };
    let (mut log, _, _) = open().unwrap();
    let history = commit_each(&mut log, 0..3);
    drop(log);
    let path = root.path().join("log-00000000000000000001.seg");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let (mut log, report, recovered) = open().unwrap();
    assert_eq!(recovered, history[..2]);
    assert_eq!(report.torn_bytes, 53);
    commit_each(&mut log, 2..3);
    drop(log);
    assert_eq!(open().unwrap().2, history);
}
