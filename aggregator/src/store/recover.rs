//! Recovery: which snapshot and which segments make up the state, read only.
//!
//! The newest whole snapshot counts. If it is damaged, an older one does, or
//! none, as long as the log after that is complete: then nothing is lost. Of
//! the log, every segment from the one that follows the snapshot's smallest
//! position must be there, and whole but for the tail of the last.

use super::directory::{Directory, Entries};
use super::error::{Damage, OpenError};
use super::position::Position;
use super::replay::{Discard, Replay, Report};
use super::scan::{End, Segment};
use super::segment::{HEADER_BYTES, SegmentId};
use super::snapshot::SnapshotId;
use super::snapshot_read::{Summary, read_snapshot};

/// What recovery found, enough for the log to go on.
pub(super) struct Recovered {
    pub(super) report: Report,
    pub(super) snapshot: Option<Summary>,
    /// The first position of the last segment, and where it ends.
    pub(super) last: Position,
    pub(super) end: End,
    /// Bytes of batches in the segments that were read.
    pub(super) log_bytes: u64,
}

/// Reads the state into `replay`, and changes nothing.
pub(super) fn recover(
    directory: &Directory,
    store: u64,
    entries: &Entries,
    replay: &mut dyn Replay,
) -> Result<Recovered, OpenError> {
    let (snapshot, mut damaged) = choose_snapshot(directory, store, entries)?;
    let after = snapshot.map_or(Position::START, |snapshot| snapshot.smallest);
    let chain = chain(directory, entries, after);
    let chain = chain.map_err(|error| first_damage(&mut damaged).unwrap_or(error))?;
    if let Some(Summary { begun, .. }) = snapshot {
        read_snapshot(directory, SnapshotId { store, begun }, replay)?;
    }
    let mut report = Report {
        shards: snapshot.map_or(0, |snapshot| u64::from(snapshot.shards)),
        snapshot_taken_at_ms: snapshot.map(|snapshot| snapshot.taken_at_ms),
        ..Report::default()
    };
    let read = read_chain(directory, store, chain, after, replay, &mut report);
    let read = read.map_err(|error| match error {
        OpenError::MissingSegment { .. } => first_damage(&mut damaged).unwrap_or(error),
        other => other,
    });
    let (last, end, log_bytes) = read?;
    report.last = end.next.previous();
    report.torn_bytes = end.torn_bytes;
    report.damaged_snapshots = damaged;
    check_reaches(directory, &report, last, end, snapshot)?;
    Ok(Recovered {
        report,
        snapshot,
        last,
        end,
        log_bytes,
    })
}

/// The newest snapshot that is whole, and the damage of those after it.
fn choose_snapshot(
    directory: &Directory,
    store: u64,
    entries: &Entries,
) -> Result<(Option<Summary>, Vec<Damage>), OpenError> {
    let mut damaged = Vec::new();
    for begun in entries.snapshots.iter().rev() {
        let id = SnapshotId {
            store,
            begun: *begun,
        };
        match read_snapshot(directory, id, &mut Discard) {
            Ok(summary) => return Ok((Some(summary), damaged)),
            Err(OpenError::Damaged(damage)) => damaged.push(*damage),
            Err(other) => return Err(other),
        }
    }
    Ok((None, damaged))
}

/// The damage of the newest snapshot: why the log alone must be complete.
fn first_damage(damaged: &mut Vec<Damage>) -> Option<OpenError> {
    let first = (!damaged.is_empty()).then(|| damaged.remove(0))?;
    Some(OpenError::Damaged(Box::new(first)))
}

/// The segments that hold what comes after a position.
fn chain<'a>(
    directory: &Directory,
    entries: &'a Entries,
    after: Position,
) -> Result<&'a [Position], OpenError> {
    let begun = entries
        .segments
        .partition_point(|first| *first <= after.next());
    let chain = begun
        .checked_sub(1)
        .and_then(|index| entries.segments.get(index..));
    chain.ok_or_else(|| missing(directory, after.next()))
}

fn missing(directory: &Directory, expected: Position) -> OpenError {
    OpenError::MissingSegment {
        file: directory.segment(expected),
        expected,
    }
}

fn read_chain(
    directory: &Directory,
    store: u64,
    chain: &[Position],
    after: Position,
    replay: &mut dyn Replay,
    report: &mut Report,
) -> Result<(Position, End, u64), OpenError> {
    let mut log_bytes = 0;
    let mut read: Option<(Position, End)> = None;
    for (index, first) in chain.iter().copied().enumerate() {
        if let Some((_, end)) = read
            && end.next != first
        {
            return Err(missing(directory, end.next));
        }
        let path = directory.segment(first);
        let bytes = directory.read(&path)?;
        let segment = Segment {
            path: &path,
            bytes: &bytes,
            id: SegmentId { store, first },
            last: index + 1 == chain.len(),
        };
        let end = segment.read(&mut |position, record| {
            if position <= after {
                return Ok(());
            }
            report.records += 1;
            report.record_bytes += record.len() as u64;
            let taken = replay.record(position, record);
            taken.map_err(|source| OpenError::Replay {
                what: format!("record {position}"),
                source,
            })
        })?;
        report.segments += 1;
        log_bytes += end.whole_bytes.saturating_sub(HEADER_BYTES as u64);
        read = Some((first, end));
    }
    let (last, end) = read.ok_or_else(|| missing(directory, after.next()))?;
    Ok((last, end, log_bytes))
}

/// Refuses a log that ends before what the snapshot contains: it was synced
/// that far when the snapshot got its name.
fn check_reaches(
    directory: &Directory,
    report: &Report,
    last: Position,
    end: End,
    snapshot: Option<Summary>,
) -> Result<(), OpenError> {
    match snapshot {
        Some(snapshot) if snapshot.largest > report.last => Err(OpenError::damaged(
            &directory.segment(last),
            end.whole_bytes,
            format!(
                "records up to {}, which the snapshot contains",
                snapshot.largest
            ),
            format!("none after {}", report.last),
        )),
        _ => Ok(()),
    }
}
