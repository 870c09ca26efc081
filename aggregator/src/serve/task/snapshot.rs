//! Snapshots, one partition at a time between batches, so that nobody waits
//! longer for one than it takes to copy a partition.

use std::{sync::mpsc, time::Duration};

use super::{
    Task,
    book_log::{Published, Sealed, SnapshotFailure, Writer},
    threads::spawn,
    work::{Event, Progress},
};
use crate::{
    chain::chain,
    store::{Position, SnapshotError},
};

/// How long a disk that did not take a snapshot is left alone.
const RETRY: Duration = Duration::from_secs(60);

/// One partition on its way to the snapshot's thread.
pub(super) struct Shard {
    pub(super) partition: u32,
    pub(super) contains: Position,
    pub(super) chunks: Vec<Vec<u8>>,
}

/// How far the snapshot under way has come.
enum Stage {
    /// There is none.
    Idle,
    /// Partitions are being written; `next` is the place of the one after those.
    Writing {
        next: usize,
        shards: mpsc::Sender<Shard>,
        thread_is_idle: bool,
    },
    /// Its thread has something to do that the task waits for.
    Away,
    /// Whole, but ahead of the log.
    Sealed(Sealed),
}

/// The snapshot under way, if there is one, and when to begin the next.
pub(super) struct Snapshots {
    stage: Stage,
    begin_at_log_bytes: u64,
    not_before: Duration,
    begun_at_ms: u64,
    /// When the last whole one was begun, in milliseconds since the Unix epoch.
    pub(super) taken_at_ms: Option<u64>,
    events: mpsc::Sender<Event>,
    /// Which partitions the log has records of.
    partitions: Vec<u32>,
}

impl Snapshots {
    pub(super) fn new(
        begin_at_log_bytes: u64,
        taken_at_ms: Option<u64>,
        events: mpsc::Sender<Event>,
        partitions: Vec<u32>,
    ) -> Self {
        Self {
            stage: Stage::Idle,
            begin_at_log_bytes,
            not_before: Duration::ZERO,
            begun_at_ms: 0,
            taken_at_ms,
            events,
            partitions,
        }
    }
}

impl Task {
    /// Begins a snapshot if it is time for one, or copies one more partition
    /// of the one under way.
    pub(super) fn snapshot_step(&mut self) {
        match self.snapshots.stage {
            Stage::Idle => self.begin_snapshot_if_due(),
            Stage::Writing {
                next,
                thread_is_idle: true,
                ..
            } => self.copy_partition(next),
            Stage::Writing { .. } | Stage::Away | Stage::Sealed(_) => {}
        }
    }

    fn begin_snapshot_if_due(&mut self) {
        let due = self.log.bytes_since_snapshot() >= self.snapshots.begin_at_log_bytes;
        let barred = self.stopping || self.commits.is_out_of_room();
        if !due || barred || self.clock.uptime() < self.snapshots.not_before {
            return;
        }
        self.snapshots.begun_at_ms = self.clock.now().as_micros() / 1000;
        let begun = self.log.begin_snapshot(self.snapshots.begun_at_ms);
        let started = begun.and_then(|writer| {
            start_writing(writer, &self.snapshots.events).map_err(|source| {
                let (action, file) = ("start a thread for", "the snapshot".into());
                SnapshotError::Io {
                    action,
                    file,
                    source,
                }
                .into()
            })
        });
        match started {
            Ok(stage) => self.snapshots.stage = stage,
            Err(error) => self.give_up_snapshot(&error),
        }
    }

    fn copy_partition(&mut self, place: usize) {
        let Some(partition) = self.snapshots.partitions.get(place).copied() else {
            return;
        };
        let ended = place.saturating_add(1);
        let chunks = self.books.snapshot(partition, self.clock.now());
        let shard = Shard {
            partition,
            // Every record up to here is applied, whichever partition it is of.
            contains: self.log.last(),
            chunks,
        };
        let Stage::Writing {
            next,
            shards,
            thread_is_idle,
        } = &mut self.snapshots.stage
        else {
            return;
        };
        // A thread that has failed says so itself.
        let _ = shards.send(shard);
        *next = ended;
        *thread_is_idle = false;
        if ended >= self.snapshots.partitions.len() {
            self.snapshots.stage = Stage::Away;
        }
    }

    pub(super) fn snapshot_came_on(&mut self, progress: Progress) {
        match progress {
            Progress::Wrote => {
                if let Stage::Writing { thread_is_idle, .. } = &mut self.snapshots.stage {
                    *thread_is_idle = true;
                }
            }
            Progress::Sealed(Ok(sealed)) => {
                self.snapshots.stage = Stage::Sealed(sealed);
                self.publish_sealed();
            }
            Progress::Published(Ok(published)) => self.snapshot_published(&published),
            Progress::Sealed(Err(error)) | Progress::Published(Err(error)) => {
                self.give_up_snapshot(&error);
            }
        }
    }

    /// Gives the snapshot its name, if it is whole and the log has caught up.
    pub(super) fn publish_sealed(&mut self) {
        let sealed = match std::mem::replace(&mut self.snapshots.stage, Stage::Away) {
            Stage::Sealed(sealed) => sealed,
            other => {
                self.snapshots.stage = other;
                return;
            }
        };
        match self.log.publish(sealed) {
            Ok(publication) => {
                let spawned = spawn("snapshot", &self.snapshots.events, |events| {
                    let progress = Progress::Published(publication.run());
                    // A task that has ended has no use for it.
                    let _ = events.send(Event::Snapshot(progress));
                });
                if spawned.is_err() {
                    self.snapshots.stage = Stage::Idle;
                }
            }
            Err(sealed) => {
                self.commits.sync_next = true;
                self.snapshots.stage = Stage::Sealed(sealed);
            }
        }
    }

    fn snapshot_published(&mut self, published: &Published) {
        self.log.finish_publication(published);
        self.snapshots.stage = Stage::Idle;
        self.snapshots.taken_at_ms = Some(self.snapshots.begun_at_ms);
        self.metrics.snapshots.inc();
        let removed = published.segments_removed();
        tracing::info!(segments_removed = removed, "a snapshot was taken");
    }

    fn give_up_snapshot(&mut self, error: &SnapshotFailure) {
        tracing::warn!(
            error = chain(error),
            "no snapshot was taken; the log goes on without"
        );
        self.metrics.snapshot_failures.inc();
        self.snapshots.stage = Stage::Idle;
        self.snapshots.not_before = self.clock.uptime() + RETRY;
    }
}

/// Starts the thread that writes a snapshot, partition by partition, and seals
/// it once no more will come.
fn start_writing(writer: Writer, events: &mpsc::Sender<Event>) -> std::io::Result<Stage> {
    let (shards, coming) = mpsc::channel::<Shard>();
    spawn("snapshot", events, move |events| {
        let sealed = write_all(writer, &coming, events);
        // A task that has ended has no use for it.
        let _ = events.send(Event::Snapshot(Progress::Sealed(sealed)));
    })?;
    Ok(Stage::Writing {
        next: 0,
        shards,
        thread_is_idle: true,
    })
}

fn write_all(
    mut writer: Writer,
    coming: &mpsc::Receiver<Shard>,
    events: &mpsc::Sender<Event>,
) -> Result<Sealed, SnapshotFailure> {
    for shard in coming {
        writer.shard(&shard)?;
        // A task that has ended, or waits for the seal, has no use for it.
        let _ = events.send(Event::Snapshot(Progress::Wrote));
    }
    writer.seal()
}
