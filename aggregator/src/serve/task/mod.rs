//! The ledger's task: one thread that owns the books, their log and the clock.
//!
//! It takes whatever has been asked, applies each request to the books, and
//! hands what that appended to the log to a second thread, which writes and
//! syncs it: one commit is under way while the next is gathered. Everyone
//! whose answer rests on a commit is answered when it is done.
//!
//! # Invariants
//!
//! - An answer that tells of a count leaves after the records it rests on are
//!   durable (see `waiting.rs`), and so does an event of a watch.
//! - What waits here is bounded (see `admission.rs`); who finds no room is
//!   told at once.
//! - A full disk stops applying: everyone is told to come again, the records
//!   that wait are tried again until they fit. Counters can be read meanwhile, as
//!   far as what they hold is durable. A failed sync ends the task: what
//!   is on the disk, only a restart can tell.

use std::{
    collections::VecDeque,
    sync::{Arc, mpsc},
    time::Duration,
};

mod admission;
mod apply;
mod book_log;
mod books;
mod check;
mod chores;
mod commit;
mod counters;
mod frames;
mod groups;
mod handle;
mod rule_book;
mod rules;
mod snapshot;
mod start;
mod threads;
mod upward;
mod waiting;
mod watches;
mod work;

pub(super) use admission::{Permit, WatchPermit};
pub use book_log::CommitFailure;
pub(super) use counters::Watching;
pub(super) use groups::{Groups, Kept, Whereabouts};
pub(super) use handle::LedgerHandle;
pub(super) use rule_book::{Origin, Revision};
pub(super) use rules::{RuleChange, RulesOnRecord};
pub(super) use start::{Place, Setup, Shown, of_groups, start};
pub(super) use work::{Check, Checked, Refusal};

use self::{
    book_log::BookLog,
    books::Books,
    check::Ahead,
    chores::Sweeps,
    commit::Commits,
    snapshot::Snapshots,
    upward::Upward,
    waiting::Waiting,
    watches::Watches,
    work::{Event, Request},
};
use super::{clock::Clock, health::HealthBoard, metrics::Metrics};
use crate::{
    shared::LoadError,
    store::{AppendError, OpenError, Position},
};

/// Why the task ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The data directory was refused.
    #[error("cannot open the data directory")]
    Open(#[from] OpenError),
    /// What the shared store holds of a group was refused, or not to be had.
    #[error("cannot take over partitions")]
    Load(#[from] LoadError),
    /// A commit failed for good. Nothing that rested on it was answered.
    #[error("the log failed; start again to recover it")]
    Commit(#[from] CommitFailure),
    /// A record was not taken, so the ledger is ahead of its log. Nothing that
    /// rested on it was answered.
    #[error("the log did not take a record; start again to recover it")]
    Append(#[from] AppendError),
    /// The disk was full when the service was to stop.
    #[error(
        "the disk takes nothing, so what waited to be written is given up; nobody was told that it counts"
    )]
    NoRoom,
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[from] std::io::Error),
    /// A thread ended that should not have.
    #[error("{0} ended unexpectedly")]
    Gone(&'static str),
    /// The partitions are another member's now.
    #[error("the partitions are another member's")]
    Abandoned,
}

struct Task {
    books: Books,
    log: BookLog,
    clock: Box<dyn Clock>,
    events: mpsc::Receiver<Event>,
    queue: VecDeque<(Request, Permit)>,
    waiting: Waiting,
    watches: Watches,
    /// The record of the rules in force.
    rules_at: Position,
    commits: Commits,
    ahead: Ahead,
    snapshots: Snapshots,
    upward: Option<Upward>,
    sweeps: Sweeps,
    stopping: bool,
    /// How long a request waits for its answer.
    patience_max: Duration,
    metrics: Arc<Metrics>,
    health: Arc<HealthBoard>,
}

impl Task {
    fn run(mut self) -> Result<(), TaskError> {
        loop {
            let patience = self.patience();
            match self.events.recv_timeout(patience) {
                Ok(event) => self.take(event)?,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => self.stopping = true,
            }
            while let Ok(event) = self.events.try_recv() {
                self.take(event)?;
            }
            self.apply_queue()?;
            self.report_upward()?;
            self.start_commit()?;
            self.do_chores();
            if self.stopping && self.has_said_all() && self.is_done() {
                return self.close();
            }
        }
    }

    fn take(&mut self, event: Event) -> Result<(), TaskError> {
        match event {
            Event::Request(request, permit) => self.queue.push_back((request, permit)),
            Event::Rules(change, answer) => self.set_rules(*change, answer)?,
            Event::Adopt(rules) => self.adopt(rules)?,
            Event::ReadRules(answer) => self.read_rules(answer),
            // Who asked may have gone away.
            Event::Ping(done) => drop(done.send(())),
            Event::Observe(done) => {
                self.observe();
                // Whoever asked may have gone away.
                let _ = done.send(());
            }
            Event::Upstream(id, answer) => self.heard_upward(id, answer)?,
            Event::AskUpstream => self.books.ledger.flush_upstream_now(),
            Event::Committed(finished) => self.committed(finished)?,
            Event::Snapshot(progress) => self.snapshot_came_on(progress),
            Event::Abandon => return Err(TaskError::Abandoned),
            Event::Gone(thread) => return Err(TaskError::Gone(thread)),
            Event::EndWatches => self.watches.close(),
            Event::Stop => {
                self.stopping = true;
                self.begin_last_words();
            }
        }
        Ok(())
    }

    /// How long nothing needs doing unless something happens.
    fn patience(&mut self) -> Duration {
        let uptime = self.clock.uptime();
        let retry = self.commits.retry_at();
        let next = retry.map_or(self.sweeps.due(), |at| at.min(self.sweeps.due()));
        let next = self.upward_due().map_or(next, |at| at.min(next));
        next.saturating_sub(uptime)
    }

    fn is_done(&self) -> bool {
        let committed = !self.log.in_flight() && self.log.waiting_bytes() == 0;
        // With the disk full there is no telling when it will be done; what
        // waits was promised to nobody.
        let hopeless = self.commits.is_out_of_room();
        self.queue.is_empty() && self.waiting.is_empty() && (committed || hopeless)
    }

    fn close(self) -> Result<(), TaskError> {
        if self.commits.is_out_of_room() {
            return Err(TaskError::NoRoom);
        }
        drop(self.snapshots);
        self.log.close()?;
        Ok(())
    }
}
