//! What is done between batches: sweeping, snapshots, and looking at gauges.

use std::time::Duration;

use limiter::{
    key::PARTITIONS,
    time::{Micros, Timestamp},
};

use super::{Task, books::Books};
use crate::store::Durability;

/// Time between the sweeps of two partitions: all of them are swept in about
/// ten seconds, or in half a minute if there are millions of loans.
const SWEEP_EVERY: Duration = Duration::from_millis(150);

/// The same for counters, whose steps are shorter: all in about three seconds, or
/// a hundred thousand entries a second. It is also how late those who watch a
/// counter hear that it has ended.
const SWEEP_COUNTERS_EVERY: Duration = Duration::from_millis(50);

/// Time between two steps of sweeping a partition that is too full for one.
const SWEEP_ON_AFTER: Duration = Duration::from_millis(10);

/// The ledger's sweep, and the counters'.
#[derive(Default)]
pub(super) struct Sweeps {
    ledger: Sweep,
    counters: Sweep,
}

/// Which partition is swept next, and when.
#[derive(Default)]
struct Sweep {
    next: u32,
    due: Duration,
}

impl Sweeps {
    pub(super) fn due(&self) -> Duration {
        self.ledger.due.min(self.counters.due)
    }
}

impl Sweep {
    /// Does a step if it is time for one. Returns whether it was.
    fn step(
        &mut self,
        every: Duration,
        uptime: Duration,
        has_more: impl FnOnce(u32) -> bool,
    ) -> bool {
        if uptime < self.due {
            return false;
        }
        if has_more(self.next) {
            self.due = uptime + SWEEP_ON_AFTER;
        } else {
            self.next = self.next.wrapping_add(1) % PARTITIONS;
            self.due = uptime + every;
        }
        true
    }
}

impl Task {
    pub(super) fn do_chores(&mut self) {
        self.snapshot_step();
        self.watch_disk();
        let (uptime, now) = (self.clock.uptime(), self.clock.now());
        let Books {
            ledger, counters, ..
        } = &mut self.books;
        let sweeps = &mut self.sweeps;
        let (ledger_due, counters_due) = (&mut sweeps.ledger, &mut sweeps.counters);
        ledger_due.step(SWEEP_EVERY, uptime, |next| ledger.sweep(next, now));
        if counters_due.step(SWEEP_COUNTERS_EVERY, uptime, |next| {
            counters.sweep(next, now)
        }) {
            self.tell_watchers();
        }
    }

    /// Brings the gauges up to date.
    pub(super) fn observe(&mut self) {
        let now = self.clock.now();
        let metrics = &self.metrics;
        metrics.set_books(&self.books.ledger);
        let above = self.books.ledger.upstream_stats(now);
        if let Some(stats) = above {
            let time = self.books.ledger.upstream_time(now);
            metrics
                .upstream
                .set(&stats, time.map(|above| ahead(now, above)));
        }
        metrics.keys.set(whole(self.books.ledger.keys()));
        let counters = &self.books.counters;
        metrics.counters.set(whole(counters.len()));
        let keys = counters.idempotency_keys();
        metrics.idempotency_keys.set(whole(keys));
        metrics.sources.set(whole(self.books.ledger.sources(now)));
        metrics.load.set_silences(&self.books.ledger.silences(now));
        metrics.load.set_clock_ahead(self.clock.ahead());
        let revision = self.books.ledger.rules().revision;
        metrics
            .rules_revision
            .set(i64::try_from(revision).unwrap_or(i64::MAX));
        let log_bytes = self.log.bytes_since_snapshot();
        metrics
            .log_bytes
            .set(i64::try_from(log_bytes).unwrap_or(i64::MAX));
        metrics.log_segments.set(whole(self.log.segments()));
        let synced = self.log.durable(Durability::Fsynced).number();
        metrics
            .log_position
            .set(i64::try_from(synced).unwrap_or(i64::MAX));
        let now_ms = now.as_micros() / 1000;
        let age = self
            .snapshots
            .taken_at_ms
            .map(|at| now_ms.saturating_sub(at));
        metrics.set_snapshot_age(age.map(Duration::from_millis));
    }
}

/// By how many seconds one time is ahead of another.
fn ahead(one: Timestamp, other: Timestamp) -> f64 {
    let seconds = |span: Micros| Duration::from_micros(span.get()).as_secs_f64();
    if one >= other {
        seconds(one.since(other))
    } else {
        -seconds(other.since(one))
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
