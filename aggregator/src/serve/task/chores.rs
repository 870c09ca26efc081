//! What is done between batches: sweeping, snapshots, and looking at gauges.

use std::time::Duration;

use limiter::key::PARTITIONS;

use super::Task;
use crate::store::Durability;

/// Time between the sweeps of two partitions: all of them are swept in about
/// ten seconds, or in half a minute if there are millions of loans.
const SWEEP_EVERY: Duration = Duration::from_millis(150);

/// Time between two steps of sweeping a partition that is too full for one.
const SWEEP_ON_AFTER: Duration = Duration::from_millis(10);

/// Which partition is swept next, and when.
#[derive(Default)]
pub(super) struct Sweep {
    next: u32,
    due: Duration,
}

impl Sweep {
    pub(super) const fn due(&self) -> Duration {
        self.due
    }
}

impl Task {
    pub(super) fn do_chores(&mut self) {
        self.snapshot_step();
        let uptime = self.clock.uptime();
        if uptime < self.sweep.due {
            return;
        }
        let now = self.clock.now();
        if self.ledger.sweep(self.sweep.next, now) {
            self.sweep.due = uptime + SWEEP_ON_AFTER;
        } else {
            self.sweep.next = self.sweep.next.wrapping_add(1) % PARTITIONS;
            self.sweep.due = uptime + SWEEP_EVERY;
        }
    }

    /// Brings the gauges up to date.
    pub(super) fn observe(&mut self) {
        let now = self.clock.now();
        let metrics = &self.metrics;
        metrics.set_books(&self.ledger);
        metrics.keys.set(whole(self.ledger.keys()));
        metrics.sources.set(whole(self.ledger.sources(now)));
        let revision = self.ledger.rules().revision;
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

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
