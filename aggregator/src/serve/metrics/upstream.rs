//! What is told of the aggregator above.

use std::sync::atomic::AtomicU64;

use limiter::ledger::UpstreamStats;
use prometheus_client::metrics::{counter::Counter, gauge::Gauge};

use super::Maker;

type Seconds = Gauge<f64, AtomicU64>;

/// Of a region that has one.
pub(in crate::serve) struct UpstreamMetrics {
    reachable: Gauge,
    last_answer_age_seconds: Seconds,
    round_trip_seconds: Seconds,
    clock_ahead_seconds: Seconds,
    waiting: Gauge,
    stakes: Gauge,
    alone_hits: Counter,
    out_of_order: Counter,
}

impl UpstreamMetrics {
    pub(super) fn new(m: &mut Maker) -> Self {
        Self {
            reachable: m.of(
                "upstream_reachable",
                "1 if the aggregator above answers; 0 if it does not, or there is none",
            ),
            last_answer_age_seconds: m.of(
                "upstream_last_answer_age_seconds",
                "Time since the aggregator above last answered; NaN before it has",
            ),
            round_trip_seconds: m.of(
                "upstream_round_trip_seconds",
                "How long the aggregator above takes to answer",
            ),
            clock_ahead_seconds: m.of(
                "upstream_clock_ahead_seconds",
                "How far this region's clock is ahead of the one above; hits count in the window \
                 that this region's clock names",
            ),
            waiting: m.of(
                "upstream_waiting",
                "Keys and windows whose hits are not in the books above yet",
            ),
            stakes: m.of(
                "upstream_stakes",
                "Keys of which this region holds a part of a limit",
            ),
            alone_hits: m.of(
                "upstream_alone_hits",
                "Hits under global rules that were counted while nobody above could be asked",
            ),
            out_of_order: m.of(
                "upstream_out_of_order",
                "Batches that another region of the same name, or lost books, had forestalled",
            ),
        }
    }

    /// Takes in how things stand; `ahead` is in seconds.
    pub(in crate::serve) fn set(&self, stats: &UpstreamStats, ahead: Option<f64>) {
        self.reachable.set((!stats.away).into());
        let age = stats.last_reply_ago.map_or(f64::NAN, seconds);
        self.last_answer_age_seconds.set(age);
        self.round_trip_seconds.set(seconds(stats.round_trip));
        self.clock_ahead_seconds.set(ahead.unwrap_or(f64::NAN));
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.waiting.set(whole(stats.waiting));
        self.stakes.set(whole(stats.stakes));
        up_to(&self.alone_hits, stats.alone_hits);
        up_to(&self.out_of_order, stats.out_of_order);
    }
}

/// Counters are told by how much they grew.
fn up_to(counter: &Counter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

fn seconds(span: limiter::time::Micros) -> f64 {
    std::time::Duration::from_micros(span.get()).as_secs_f64()
}
