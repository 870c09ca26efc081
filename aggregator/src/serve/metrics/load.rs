//! How near the service is to what it can bear, and whether it is well: what alerts
//! look at.

use std::{sync::atomic::AtomicU64, time::Duration};

use limiter::time::Micros;
use prometheus_client::metrics::{family::Family, gauge::Gauge, histogram::Histogram};

use super::{Label, Maker};
use crate::{config::Config, store::Room};

/// Which of all sources, by how long they have been silent: half of them, all but one
/// in ten, all.
const QUANTILES: [(&str, usize); 3] = [("0.5", 50), ("0.9", 90), ("1", 100)];

type Seconds = Gauge<f64, AtomicU64>;

/// Metrics of load, and of what there is room for.
pub(in crate::serve) struct LoadMetrics {
    ready: Gauge,
    queue_requests_max: Gauge,
    queue_wait_seconds: Histogram,
    connections_max: Gauge,
    keys_max: Gauge,
    disk_free_bytes: Gauge,
    disk_bytes: Gauge,
    source_silence_seconds: Family<Label, Seconds>,
    clock_ahead_seconds: Seconds,
}

impl LoadMetrics {
    pub(super) fn new(m: &mut Maker) -> Self {
        let build: Family<Label, Gauge> = m.of("build_info", "1, and which release this is");
        let version = env!("CARGO_PKG_VERSION").to_owned();
        build.get_or_create(&[("version", version)]).set(1);
        Self {
            ready: m.of("ready", "1 if /readyz says so, else 0"),
            queue_requests_max: m.of("queue_requests_max", "Requests that may be under way"),
            queue_wait_seconds: m.seconds(
                "queue_wait_seconds",
                "How long requests waited for the ledger's task to take them up",
            ),
            connections_max: m.of("connections_max", "Connections that may be open"),
            keys_max: m.of("keys_max", "Counts that may be held"),
            disk_free_bytes: m.of(
                "disk_free_bytes",
                "What the disk of the data directory has left for this process",
            ),
            disk_bytes: m.of("disk_bytes", "How large the disk of the data directory is"),
            source_silence_seconds: m.of(
                "source_silence_seconds",
                "Time since sources were last heard of: of half, nine tenths and all of those \
                 heard of in the last 30 s, the longest",
            ),
            clock_ahead_seconds: m.of(
                "clock_ahead_seconds",
                "How far the region's time is ahead of the machine's clock, which was set back",
            ),
        }
    }

    /// What there may be of everything.
    pub(in crate::serve) fn set_limits(&self, config: &Config) {
        let limits = &config.limits;
        self.queue_requests_max
            .set(limits.queue_requests_max.into());
        self.connections_max.set(limits.connections_max.into());
        self.keys_max
            .set(i64::try_from(config.keys_max).unwrap_or(i64::MAX));
    }

    pub(in crate::serve) fn set_ready(&self, ready: bool) {
        self.ready.set(ready.into());
    }

    /// Takes note of how long a request waited.
    pub(in crate::serve) fn waited(&self, time: Duration) {
        self.queue_wait_seconds.observe(time.as_secs_f64());
    }

    pub(in crate::serve) fn set_disk(&self, room: Room) {
        let whole = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.disk_free_bytes.set(whole(room.free_bytes));
        self.disk_bytes.set(whole(room.bytes));
    }

    pub(in crate::serve) fn set_clock_ahead(&self, by: Duration) {
        self.clock_ahead_seconds.set(by.as_secs_f64());
    }

    /// How long each source has been silent, shortest first.
    pub(in crate::serve) fn set_silences(&self, silences: &[Micros]) {
        for (name, percent) in QUANTILES {
            let place = silences.len().saturating_mul(percent).div_ceil(100);
            let silence = place.checked_sub(1).and_then(|place| silences.get(place));
            let labels = [("quantile", name.to_owned())];
            // Of nobody nothing can be said; a source that has gone is no alarm.
            let seconds = silence.map_or(0.0, |silence| silence.get() as f64 / 1e6);
            self.source_silence_seconds
                .get_or_create(&labels)
                .set(seconds);
        }
    }
}
