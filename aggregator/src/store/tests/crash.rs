//! Any schedule, a crash at any moment, several lives: nothing committed is
//! lost, nothing comes twice, nothing appears that was never appended.

use std::ops::Range;

use proptest::prelude::*;

use super::model::{Record, SHARDS, open, shard_bytes};
use crate::store::{
    CommitError, Crash, Durability, FakeDisk, Log, Pending, Position, Publication, SealedSnapshot,
    SnapshotWriter,
};

#[derive(Clone, Copy, Debug)]
enum Step {
    Append {
        kind: u8,
        len: usize,
    },
    Commit(Durability),
    StartCommit(Durability),
    FinishCommit,
    /// The next thing a snapshot has to do: begin, a shard, seal, publish.
    Snapshot,
    DropSnapshot,
    /// Fails the next sync of a file.
    FailSync,
    /// Leaves this much room on the disk, or any.
    Room(Option<u64>),
}

#[derive(Clone, Debug)]
struct Life {
    steps: Vec<Step>,
    dies_after: u64,
    crash: Crash,
    close: bool,
}

fn durability() -> impl Strategy<Value = Durability> {
    prop_oneof![
        1 => Just(Durability::Written),
        2 => Just(Durability::Fsynced),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u8>(), 0..60_usize).prop_map(|(kind, len)| Step::Append { kind, len }),
        3 => durability().prop_map(Step::Commit),
        3 => durability().prop_map(Step::StartCommit),
        3 => Just(Step::FinishCommit),
        5 => Just(Step::Snapshot),
        1 => Just(Step::DropSnapshot),
        1 => Just(Step::FailSync),
        1 => prop::option::of(0..300_u64).prop_map(Step::Room),
    ]
}

fn life(operations: Range<u64>) -> impl Strategy<Value = Life> {
    let steps = prop::collection::vec(step(), 1..60);
    let crash = prop_oneof![Just(Crash::Killed), Just(Crash::PowerLost)];
    (steps, operations, crash, any::<bool>()).prop_map(|(steps, dies_after, crash, close)| Life {
        steps,
        dies_after,
        crash,
        close,
    })
}

/// A snapshot under way.
#[derive(Default)]
enum Snapshot {
    #[default]
    None,
    Writing(SnapshotWriter, u32),
    Sealed(SealedSnapshot),
    Ready(Publication),
}

/// One life of the log, and what was promised in it.
struct Run {
    disk: FakeDisk,
    log: Log,
    history: Vec<Record>,
    pending: Option<Pending>,
    snapshot: Snapshot,
    written: Position,
    synced: Position,
    /// Whether a commit failed for good.
    failed: bool,
}

impl Run {
    /// Takes a step; false once the disk has died.
    fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Append { kind, len } => {
                let record = vec![kind; len];
                if let Ok(position) = self.log.append(&[&record[..len / 2], &record[len / 2..]]) {
                    self.history.push((position, record));
                }
                true
            }
            Step::Commit(durability) if self.pending.is_none() => {
                let outcome = self.log.commit(durability);
                self.note(durability, outcome)
            }
            Step::StartCommit(durability) if self.pending.is_none() => {
                self.pending = self.log.start_commit(durability).unwrap();
                true
            }
            Step::FinishCommit => self.finish_commit(),
            Step::Snapshot => self.step_snapshot(),
            Step::DropSnapshot => {
                self.snapshot = Snapshot::None;
                true
            }
            Step::FailSync => {
                self.disk.fail_next_sync();
                true
            }
            Step::Room(room) => {
                let room = room.map(|room| self.disk.used() + room);
                self.disk.limit_room(room);
                true
            }
            Step::Commit(_) | Step::StartCommit(_) => {
                let refused = self.log.commit(Durability::Written);
                matches!(refused, Err(CommitError::InFlight))
            }
        }
    }

    fn finish_commit(&mut self) -> bool {
        let Some(pending) = self.pending.take() else {
            return true;
        };
        let outcome = self.log.finish_commit(pending.run());
        self.note(Durability::Written, outcome)
    }

    fn note(&mut self, durability: Durability, outcome: Result<Position, CommitError>) -> bool {
        match outcome {
            Ok(position) => assert_eq!(position, self.log.durable(durability)),
            Err(error) => {
                self.failed = !error.is_transient();
                return !self.failed;
            }
        }
        self.written = self.log.durable(Durability::Written);
        self.synced = self.log.durable(Durability::Fsynced);
        true
    }

    fn step_snapshot(&mut self) -> bool {
        let next = match std::mem::take(&mut self.snapshot) {
            Snapshot::None => self
                .log
                .begin_snapshot(1)
                .map(|writer| Snapshot::Writing(writer, 0)),
            Snapshot::Writing(writer, SHARDS) => writer.seal().map(Snapshot::Sealed),
            Snapshot::Writing(mut writer, shard) => {
                let bytes = shard_bytes(&self.history, shard);
                let (one, other) = bytes.split_at(bytes.len() / 3);
                writer
                    .shard(shard, self.log.last(), one)
                    .and_then(|()| writer.shard(shard, self.log.last(), other))
                    .map(|()| Snapshot::Writing(writer, shard + 1))
            }
            Snapshot::Sealed(sealed) => Ok(match self.log.publish(sealed) {
                Ok(publication) => Snapshot::Ready(publication),
                Err(sealed) => Snapshot::Sealed(sealed),
            }),
            Snapshot::Ready(publication) => publication.run().map(|published| {
                self.log.finish_publication(&published);
                Snapshot::None
            }),
        };
        match next {
            Ok(next) => self.snapshot = next,
            // A snapshot may fail on a full disk; the log goes on without it.
            Err(_) => return !self.disk.is_dead(),
        }
        true
    }
}

/// What one life leaves behind: what was there or appended, and how far it
/// must survive the death of the process and the loss of power.
struct Legacy {
    history: Vec<Record>,
    written: Position,
    synced: Position,
}

/// Lives once on `disk`, up to and including the crash.
fn live(disk: &FakeDisk, life: &Life, before: Legacy) -> Legacy {
    disk.die_after(life.dies_after);
    let (log, _, history) = match open(disk) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(disk.is_dead(), "refused: {error}");
            disk.crash(life.crash);
            return before;
        }
    };
    assert_eq!(history, before.history, "what was recovered stays");
    let recovered = log.last();
    let mut run = Run {
        disk: disk.clone(),
        log,
        history,
        pending: None,
        snapshot: Snapshot::None,
        written: recovered,
        synced: recovered,
        failed: false,
    };
    let ended = life.steps.iter().all(|step| run.step(*step));
    assert!(
        ended || run.failed || disk.is_dead(),
        "failed on a good disk"
    );
    if ended && life.close && run.pending.is_none() && run.log.close().is_ok() {
        run.written = Position::new(u64::MAX);
        run.synced = run.written;
    }
    disk.crash(life.crash);
    disk.limit_room(None);
    Legacy {
        history: run.history,
        written: run.written,
        synced: run.synced,
    }
}

/// What is there after the crash, checked against what was appended.
fn check(disk: &FakeDisk, appended: &[Record], promised: Position) -> Vec<Record> {
    let (log, report, recovered) = open(&disk.copy(1)).expect("a crash is recovered from");
    let kept = recovered.len();
    assert!(kept <= appended.len(), "something appeared");
    assert_eq!(
        recovered,
        appended[..kept],
        "not a prefix of what was appended"
    );
    let must = appended
        .iter()
        .filter(|record| record.0 <= promised)
        .count();
    assert!(kept >= must, "{kept} recovered of {must} committed");
    assert_eq!(report.last, log.last());
    assert!(
        report.damaged_snapshots.is_empty(),
        "a torn snapshot had its name"
    );
    recovered
}

fn run_lives(seed: u64, lives: &[Life]) {
    let disk = FakeDisk::new(seed);
    let mut legacy = Legacy {
        history: Vec::new(),
        written: Position::START,
        synced: Position::START,
    };
    for life in lives {
        legacy = live(&disk, life, legacy);
        let promised = match life.crash {
            Crash::Killed => legacy.written,
            Crash::PowerLost => legacy.synced,
        };
        legacy.history = check(&disk, &legacy.history, promised);
        // All that is there has at least been written. What has only been
        // written is not promised to last before a start has synced it.
        let last = legacy.history.last().map_or(Position::START, |last| last.0);
        legacy.written = last;
        legacy.synced = match life.crash {
            Crash::Killed => legacy.synced.min(last),
            Crash::PowerLost => last,
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("STORE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_is_committed_survives_any_crash_exactly_once_and_in_order(
        seed in any::<u64>(),
        lives in prop::collection::vec(life(0..120), 1..5),
    ) {
        run_lives(seed, &lives);
    }
}

/// The same, at every operation of one long schedule.
#[test]
fn a_crash_at_each_operation_of_a_full_life_loses_nothing_committed() {
    let append = |kind| Step::Append { kind, len: 50 };
    let mut steps = Vec::new();
    for round in 0..12 {
        steps.extend([append(round), append(round + 1)]);
        steps.push(Step::Commit(if round % 3 == 2 {
            Durability::Written
        } else {
            Durability::Fsynced
        }));
        steps.push(Step::Snapshot);
    }
    for dies_after in 0..90 {
        for crash in [Crash::Killed, Crash::PowerLost] {
            for seed in 0..6 {
                let life = |dies_after| Life {
                    steps: steps.clone(),
                    dies_after,
                    crash,
                    close: false,
                };
                run_lives(seed, &[life(dies_after), life(30), life(1000)]);
            }
        }
    }
}
