//! A flipped bit anywhere is noticed, or harmless; it is never served.

use super::model::{commit_each, dir, files, open, snapshot};
use crate::store::{Durability, FakeDisk, OpenError};

#[test]
fn a_flipped_bit_at_any_byte_is_never_served() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    let mut history = commit_each(&mut log, 0..9);
    snapshot(&mut log, &history);
    history.extend(commit_each(&mut log, 9..20));
    let synced = history.len() - 1;
    drop(log);
    let last = files(&disk, ".seg").pop().unwrap();
    let replaced = files(&disk, ".seg").remove(0);
    let tail = disk.content(&last).unwrap().len() - 60;
    let (mut refused, mut cut) = (0, 0);
    for (path, content) in disk.files() {
        for byte in 0..content.len() {
            for bit in [byte % 8, (byte + 3) % 8] {
                let copy = disk.copy(1);
                copy.flip(&path, byte, u8::try_from(bit).unwrap());
                match open(&copy) {
                    Ok((_, report, recovered)) if report.torn_bytes > 0 => {
                        assert!(path == last && byte >= tail, "cut by {path:?} {byte}");
                        assert_eq!(recovered, history[..synced]);
                        cut += 1;
                    }
                    Ok((_, _, recovered)) => {
                        assert_eq!(recovered, history);
                        // A segment before the snapshot is not read, but removed.
                        let harmless = path == dir().join("LOCK") || path == replaced;
                        assert!(harmless, "unnoticed in {path:?} at {byte}");
                    }
                    Err(OpenError::Io { .. }) => panic!("{path:?} at {byte}: not named"),
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(refused > 1000 && cut == 120, "{refused} refused, {cut} cut");
}

/// The contents of a record cannot pass for a batch: they would have to know
/// the directory's identity and where they will lie.
#[test]
fn a_whole_log_inside_a_record_is_only_a_record() {
    let disk = FakeDisk::new(1);
    let (mut log, _, _) = open(&disk).unwrap();
    commit_each(&mut log, 0..2);
    let path = files(&disk, ".seg").remove(0);
    let copied = disk.content(&path).unwrap();
    log.append(&[&copied]).unwrap();
    log.commit(Durability::Fsynced).unwrap();
    drop(log);
    assert_eq!(open(&disk).unwrap().2[2].1, copied);
    let mut torn = disk.content(&path).unwrap();
    torn.pop();
    disk.place(&path, &torn);
    let (_, report, recovered) = open(&disk).unwrap();
    assert_eq!((recovered.len(), report.torn_bytes), (2, 36 + 4 + 152 - 1));
}
