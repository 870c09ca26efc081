//! A backup holds what was durable when it was taken, and nothing less is
//! restored.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::model::{Model, commit_each, dir, open, snapshot};
use crate::store::{
    Backup, Crash, Disk, FakeDisk, Log, OpenError, Options, RestoreError, restore, verify,
};

fn elsewhere() -> PathBuf {
    Path::new("/elsewhere").to_owned()
}

fn taken(disk: &FakeDisk) -> Vec<u8> {
    let backup = Backup::of(Arc::new(disk.clone()), dir()).unwrap();
    let bytes = backup.bytes();
    let archive = backup.write(Vec::new()).unwrap();
    assert_eq!(archive.len() as u64, bytes);
    archive
}

fn put_back(disk: &FakeDisk, archive: &[u8]) -> Result<(), RestoreError> {
    restore(Arc::new(disk.clone()), &elsewhere(), archive).map(drop)
}

/// What a start would find in what was restored.
fn restored(disk: &FakeDisk) -> usize {
    let mut model = Model::new();
    let disk = Arc::new(disk.clone());
    let opened = Log::open(disk, &elsewhere(), Options::default(), &mut model);
    drop(opened.unwrap());
    model.history().len()
}

#[test]
fn a_directory_in_use_is_copied_with_everything_durable_and_its_log_goes_on() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let mut history = commit_each(&mut log, 0..20);
    snapshot(&mut log, &history);
    history.extend(commit_each(&mut log, 20..30));
    let archive = taken(&disk);
    commit_each(&mut log, 30..40);
    let other = FakeDisk::new(2);
    put_back(&other, &archive).unwrap();
    assert_eq!(restored(&other), 30);
    assert!(verify(Arc::new(disk), dir()).is_err(), "still in use");
}

#[test]
fn what_a_crash_would_take_back_does_not_spoil_a_backup() {
    let disk = FakeDisk::new(3);
    let (mut log, _, _) = open(&disk).unwrap();
    commit_each(&mut log, 0..5);
    let segment = super::model::files(&disk, ".seg").pop().unwrap();
    let mut file = disk.open_append(&segment).unwrap();
    file.append(&[7; 11]).unwrap();
    let other = FakeDisk::new(4);
    put_back(&other, &taken(&disk)).unwrap();
    assert_eq!(restored(&other), 5);
}

#[test]
fn a_backup_cut_short_anywhere_is_refused_and_leaves_nothing() {
    let disk = FakeDisk::new(5);
    let (mut log, _, _) = open(&disk).unwrap();
    commit_each(&mut log, 0..5);
    let archive = taken(&disk);
    let marker = archive.len() - 2_048;
    for end in (0..marker).step_by(97) {
        let other = FakeDisk::new(6);
        put_back(&other, &archive[..end]).unwrap_err();
        let left = other.files();
        assert!(
            left.iter().all(|(path, _)| path.ends_with("LOCK")),
            "{left:?}"
        );
    }
}

#[test]
fn a_bit_flipped_in_a_backup_is_found_when_it_is_restored() {
    let disk = FakeDisk::new(7);
    let (mut log, _, _) = open(&disk).unwrap();
    commit_each(&mut log, 0..200);
    drop(log.close());
    let archive = taken(&disk);
    let record = 512 + 32 + 100;
    let mut flipped = archive.clone();
    flipped[record] ^= 4;
    let error = put_back(&FakeDisk::new(8), &flipped).unwrap_err();
    assert!(
        matches!(error, RestoreError::Directory(OpenError::Damaged(_))),
        "{error}"
    );
    put_back(&FakeDisk::new(8), &archive).unwrap();
}

#[test]
fn nothing_that_is_there_is_written_over() {
    let disk = FakeDisk::new(9);
    drop(open(&disk).unwrap());
    let archive = taken(&disk);
    for name in ["notes.txt", "weir-data", "log-00000000000000000001.seg"] {
        let other = FakeDisk::new(10);
        other.place(&elsewhere().join(name), b"precious");
        let before = other.files();
        match put_back(&other, &archive).unwrap_err() {
            RestoreError::Occupied { found, .. } => assert_eq!(found, name),
            error => panic!("{error}"),
        }
        assert_eq!(other.files(), before);
    }
}

#[test]
fn a_crash_while_a_backup_is_restored_leaves_it_whole_or_no_data_directory() {
    let disk = FakeDisk::new(11);
    let (mut log, _, _) = open(&disk).unwrap();
    commit_each(&mut log, 0..5);
    let archive = taken(&disk);
    let mut whole = 0;
    for moment in 0..20 {
        let other = FakeDisk::new(moment);
        other.die_after(moment);
        let done = put_back(&other, &archive).is_ok();
        other.crash(Crash::PowerLost);
        match verify(Arc::new(other.clone()), &elsewhere()) {
            Ok(_) => {
                assert_eq!(restored(&other), 5);
                whole += 1;
            }
            Err(OpenError::Absent { .. } | OpenError::Io { .. }) => assert!(!done),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(whole > 0);
}

/// Reads that fail half way.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the line is down")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_backup_that_cannot_be_read_says_why() {
    let disk = FakeDisk::new(12);
    drop(open(&disk).unwrap());
    let archive = taken(&disk);
    let half = Broken(&archive[..archive.len() / 2]);
    let error = restore(Arc::new(FakeDisk::new(13)), &elsewhere(), half).unwrap_err();
    let RestoreError::Read(source) = error else {
        panic!("{error}");
    };
    assert!(source.to_string().contains("the line is down"), "{source}");
}
