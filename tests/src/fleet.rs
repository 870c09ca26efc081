//! Three Envoys of two workers each that share one `weir serve`, near or far.

use std::net::SocketAddr;
use std::time::Duration;

use crate::aggregator::Aggregator;
use crate::delay::Delay;
use crate::envoy::Envoy;
use crate::http::get;
use crate::spray::Spray;
use crate::wait::wait_until;

/// Envoys in a fleet.
pub const ENVOYS: usize = 3;

/// Worker threads of each; each is a source of its own.
pub const WORKERS: usize = 2;

/// Clients of a spray: enough for every worker to have some of their connections.
const CLIENTS: u32 = 16;

/// A running fleet.
#[derive(Debug)]
pub struct Fleet {
    /// The Envoys.
    pub envoys: Vec<Envoy>,
    /// What stands between them and the region, if it is far.
    pub delay: Option<Delay>,
    /// The region.
    pub aggregator: Aggregator,
}

impl Fleet {
    /// A fleet with these rules whose region is next to it.
    #[must_use]
    pub fn start(rules: &str) -> Self {
        let aggregator = Aggregator::start(rules);
        Self::of(aggregator, None, "")
    }

    /// The same with more arguments for `weir serve`.
    #[must_use]
    pub fn start_with(rules: &str, arguments: &[&str]) -> Self {
        let aggregator = Aggregator::start_with(rules, arguments);
        Self::of(aggregator, None, "")
    }

    /// A fleet whose region is far: `each_way` in either direction. The filters
    /// are configured by `config`.
    #[must_use]
    pub fn far(rules: &str, each_way: Duration, config: &str) -> Self {
        let aggregator = Aggregator::start(rules);
        let delay = Delay::start(aggregator.address(), each_way);
        Self::of(aggregator, Some(delay), config)
    }

    fn of(aggregator: Aggregator, delay: Option<Delay>, config: &str) -> Self {
        let region = delay
            .as_ref()
            .map_or(aggregator.address(), |delay| delay.address());
        let workers = u32::try_from(WORKERS).expect("a few workers");
        let fleet = Self {
            envoys: (0..ENVOYS)
                .map(|_| Envoy::with_weir(config, workers, Some(region)))
                .collect(),
            delay,
            aggregator,
        };
        fleet.wait_for_rules(1);
        fleet
    }

    /// Waits until every VM runs the one rule in this revision.
    pub fn wait_for_rules(&self, revision: u64) {
        wait_until("every VM runs the rules", || self.runs_rules(revision));
    }

    /// Whether every VM runs the one rule in this revision: one a worker, and each
    /// Envoy's main one.
    #[must_use]
    pub fn runs_rules(&self, revision: u64) -> bool {
        let line = format!("rules in force: 1, revision {revision}");
        self.envoys
            .iter()
            .all(|envoy| envoy.log().matches(&line).count() > WORKERS)
    }

    /// Requests for one API key to all Envoys in turn, this many a second.
    #[must_use]
    pub fn spray(&self, key: &str, per_second: u32) -> Spray {
        let addresses: Vec<SocketAddr> = self.envoys.iter().map(Envoy::address).collect();
        let request = get("/", &[("x-api-key", key)]);
        Spray::start(addresses, CLIENTS, per_second, request)
    }

    /// Hits in the region's books; none while it is away.
    #[must_use]
    pub fn hits(&self) -> Option<u64> {
        let metrics = self.aggregator.metrics()?;
        Some(whole(metrics.sum_or_zero("weir_hits_total", &[])))
    }

    /// Of those, hits that leaked, since the region's last start.
    #[must_use]
    pub fn leaks_on_record(&self) -> Option<u64> {
        let metrics = self.aggregator.metrics()?;
        Some(whole(metrics.sum_or_zero("weir_leaked_hits_total", &[])))
    }

    /// Hits that the Envoys say have leaked.
    #[must_use]
    pub fn leaked(&self) -> u64 {
        self.sum("weir_leaked_total")
    }

    /// Whether every VM takes the region to be away.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.sum("weir_sources_away") >= self.sum("weir_sources")
    }

    /// One of the filter's metrics over all Envoys.
    #[must_use]
    pub fn sum(&self, name: &str) -> u64 {
        let one = |envoy: &Envoy| envoy.metrics().sum_or_zero(name, &[]);
        whole(self.envoys.iter().map(one).sum())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters are whole and small"
)]
fn whole(count: f64) -> u64 {
    count.round() as u64
}
