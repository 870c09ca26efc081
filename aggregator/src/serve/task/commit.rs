//! Commits: one under way on a thread of its own, the next being gathered.

use std::{sync::mpsc, time::Duration};

use super::{
    Task, TaskError,
    book_log::{CommitFailure, Finished, Pending},
    threads::spawn,
    work::{Event, Refusal},
};
use crate::{chain::chain, serve::health::Health, store::Durability};

/// How long a disk that took nothing is left alone.
const RETRY: Duration = Duration::from_millis(250);

/// The way to the thread that waits for the disk, and how it went last.
pub(super) struct Commits {
    thread: mpsc::Sender<Pending>,
    durability: Durability,
    started_at: Duration,
    out_of_room: Option<OutOfRoom>,
    /// Whether the one under way takes longer than anybody waits.
    stalled: bool,
    /// Whether the next one must be synced whatever was chosen: a snapshot
    /// waits for it.
    pub(super) sync_next: bool,
}

struct OutOfRoom {
    why: String,
    retry_at: Duration,
}

impl Commits {
    /// Starts the thread.
    pub(super) fn start(
        durability: Durability,
        events: &mpsc::Sender<Event>,
    ) -> std::io::Result<Self> {
        let (sender, jobs) = mpsc::channel::<Pending>();
        spawn("commits", events, |events| {
            for pending in jobs {
                if events.send(Event::Committed(pending.run())).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            thread: sender,
            durability,
            started_at: Duration::ZERO,
            out_of_room: None,
            stalled: false,
            sync_next: false,
        })
    }

    pub(super) const fn durability(&self) -> Durability {
        self.durability
    }

    pub(super) const fn is_out_of_room(&self) -> bool {
        self.out_of_room.is_some()
    }

    pub(super) fn retry_at(&self) -> Option<Duration> {
        self.out_of_room.as_ref().map(|out| out.retry_at)
    }

    /// Why nothing is applied at present.
    pub(super) fn obstacle(&self) -> Option<Refusal> {
        let out = self.out_of_room.as_ref()?;
        Health::NoRoom(out.why.clone())
            .obstacle()
            .map(Refusal::Unready)
    }
}

impl Task {
    /// Sends off what was gathered, unless a commit is under way.
    pub(super) fn start_commit(&mut self) -> Result<(), TaskError> {
        let uptime = self.clock.uptime();
        let too_early = self.commits.retry_at().is_some_and(|at| uptime < at);
        if too_early || self.log.in_flight() {
            return Ok(());
        }
        let durability = match self.commits.sync_next {
            true => Durability::Fsynced,
            false => self.commits.durability,
        };
        let Some(pending) = self.log.start_commit(durability)? else {
            self.commits.sync_next = false;
            return Ok(());
        };
        self.commits.sync_next = false;
        self.ahead.begin_commit();
        self.commits.started_at = uptime;
        let gone = |_| TaskError::Gone("commits");
        self.commits.thread.send(pending).map_err(gone)
    }

    /// Answers everyone who waited for this commit.
    pub(super) fn committed(&mut self, finished: Finished) -> Result<(), TaskError> {
        match self.log.finish_commit(finished) {
            Ok(()) => {
                let took = self.clock.uptime().saturating_sub(self.commits.started_at);
                self.metrics.commit_seconds.observe(took.as_secs_f64());
                self.room_again();
                self.waiting.release(self.durable());
                self.release_upward();
                self.tell_watchers();
                self.publish_sealed();
                Ok(())
            }
            Err(error) if error.is_transient() => {
                self.run_out(&error);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn room_again(&mut self) {
        let was_full = self.commits.out_of_room.take().is_some();
        if was_full || std::mem::take(&mut self.commits.stalled) {
            tracing::info!("the disk takes records again");
            self.report_serving();
        }
    }

    /// Says so when the commit under way takes longer than anybody waits for it.
    pub(super) fn watch_disk(&mut self) {
        if !self.log.in_flight() || self.commits.stalled || self.commits.is_out_of_room() {
            return;
        }
        let took = self.clock.uptime().saturating_sub(self.commits.started_at);
        if took >= self.patience_max {
            tracing::error!(took_ms = took.as_millis(), "the disk does not answer");
            self.commits.stalled = true;
            self.health.set(Health::Stalled(self.patience_max));
        }
    }

    /// Tells everyone to come again, and keeps the records for another try.
    fn run_out(&mut self, error: &CommitFailure) {
        let why = chain(error);
        if self.commits.out_of_room.is_none() {
            tracing::error!(
                error = why,
                "nothing is counted until the disk takes records again"
            );
        }
        self.commits.stalled = false;
        self.metrics.commit_failures.inc();
        self.health.set(Health::NoRoom(why.clone()));
        self.waiting.refuse(&Refusal::Kept(why.clone()));
        let retry_at = self.clock.uptime() + RETRY;
        self.commits.out_of_room = Some(OutOfRoom { why, retry_at });
    }
}
