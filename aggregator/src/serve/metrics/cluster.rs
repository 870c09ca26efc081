//! What is counted about sharing a store.

use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};

use super::{Label, Maker};

/// Of one member. All zero without a shared store.
pub(in crate::serve) struct ClusterMetrics {
    pub(in crate::serve) groups_owned: Gauge,
    pub(in crate::serve) fence_losses: Counter,
    pub(in crate::serve) store_failures: Counter,
    forwards: Family<Label, Counter>,
}

impl ClusterMetrics {
    pub(super) fn new(m: &mut Maker) -> Self {
        Self {
            groups_owned: m.of(
                "groups_owned",
                "Groups of partitions that this member owns in the shared store",
            ),
            fence_losses: m.of(
                "fence_losses",
                "Groups that were lost to another member without being handed over",
            ),
            store_failures: m.of(
                "store_failures",
                "Times that the shared store did not answer whoever keeps the leases",
            ),
            forwards: m.of(
                "forwards",
                "Requests, or parts of them, sent on to other members, by outcome",
            ),
        }
    }

    /// Takes note of something that was sent on.
    pub(in crate::serve) fn count_forward(&self, outcome: &str) {
        let labels = [("outcome", outcome.to_owned())];
        self.forwards.get_or_create(&labels).inc();
    }
}
