//! What is counted about keys that there was no room for.

use limiter::ledger::Crush;
use prometheus_client::metrics::counter::Counter;

use super::{Maker, raise};

/// Metrics of keys beyond those that may be held.
pub(super) struct CrushMetrics {
    evicted_keys: Counter,
    untracked_hits: Counter,
    unrecorded_loans: Counter,
}

impl CrushMetrics {
    pub(super) fn new(m: &mut Maker) -> Self {
        Self {
            evicted_keys: m.of(
                "evicted_keys",
                "Counts far from their limit that made room for others; since this start",
            ),
            untracked_hits: m.of(
                "untracked_hits",
                "Hits of keys that there was no room to count; since this start",
            ),
            unrecorded_loans: m.of(
                "unrecorded_loans",
                "Answers for keys that there was no room to note a loan of; since this start",
            ),
        }
    }

    /// Copies the ledger's sums.
    pub(super) fn set(&self, crush: Crush) {
        raise(&self.evicted_keys, crush.evicted_keys);
        raise(&self.untracked_hits, crush.untracked_hits);
        raise(&self.unrecorded_loans, crush.unrecorded_loans);
    }
}
