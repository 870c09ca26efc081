//! What is started: the service, the aggregator, the Envoys; and the rule file.

use std::net::SocketAddr;
use std::thread;

use weir_tests::aggregator::Aggregator;
use weir_tests::envoy::{Envoy, weir_filter};
use weir_tests::envoy_config::Setup;
use weir_tests::process::free_address;
use weir_tests::prom::Samples;
use weir_tests::upstream::Upstream;

use crate::interrupt::{Interrupted, Interrupts};
use crate::plan::{Limits, POPS, Plan, Rule, WORKERS};

/// Every process of the demo. Dropping it ends them and removes their files.
pub(crate) struct Stage {
    pub(crate) envoys: Vec<Envoy>,
    pub(crate) aggregator: Aggregator,
    _service: Upstream,
}

/// Hits by rule, in the order of [`Rule::ALL`].
pub(crate) type ByRule = [u64; Rule::ALL.len()];

impl Stage {
    /// Starts all of it, and returns once every worker runs the rules.
    pub(crate) fn set(plan: &Plan, interrupts: &Interrupts) -> Result<Self, Interrupted> {
        let service = Upstream::start();
        let aggregator = Aggregator::start(&rules(plan, plan.first_limits()));
        interrupts.check()?;
        let (region, upstream) = (aggregator.address(), service.address());
        let envoys = thread::scope(|scope| {
            let starting: Vec<_> = (1..=POPS)
                .map(|n| scope.spawn(move || start_envoy(n, region, upstream)))
                .collect();
            let joined = starting.into_iter().map(|envoy| envoy.join());
            joined.filter_map(Result::ok).collect::<Vec<_>>()
        });
        interrupts.check()?;
        assert_eq!(envoys.len(), POPS, "every Envoy starts");
        Ok(Self {
            envoys,
            aggregator,
            _service: service,
        })
    }

    /// Whether every worker of every POP runs rules: until then it passes all.
    pub(crate) fn has_rules(&self) -> bool {
        // The main thread has a limiter of its own.
        let vms = WORKERS as usize + 1;
        self.envoys
            .iter()
            .all(|envoy| envoy.log().matches("rules in force").count() >= vms)
    }

    /// Where each POP takes requests.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.envoys.iter().map(Envoy::address).collect()
    }

    /// A metric of each POP, summed over the labels left open.
    pub(crate) fn of_pops(&self, metric: &str, labels: &[(&str, &str)]) -> [u64; POPS] {
        let mut values = [0; POPS];
        for (value, envoy) in values.iter_mut().zip(&self.envoys) {
            *value = whole(envoy.metrics().sum_or_zero(metric, labels));
        }
        values
    }

    /// Hits that the POPs say they admitted, by rule. A hit is a request here.
    pub(crate) fn admitted(&self) -> ByRule {
        Rule::ALL.map(|rule| {
            let labels = [("rule", rule.name()), ("verdict", "allow")];
            self.of_pops("weir_requests_total", &labels).iter().sum()
        })
    }

    /// Whether every source of every POP takes the region to be away; or none.
    pub(crate) fn away(&self) -> Away {
        let away: u64 = self.of_pops("weir_sources_away", &[]).iter().sum();
        let sources: u64 = self.of_pops("weir_sources", &[]).iter().sum();
        match away {
            0 => Away::None,
            _ if away >= sources => Away::All,
            _ => Away::Some,
        }
    }

    /// Hits in the region's books, by rule; none while it is away.
    pub(crate) fn books(&self) -> Option<ByRule> {
        let samples = self.aggregator.metrics()?;
        Some(Rule::ALL.map(|rule| of_rule(&samples, "weir_hits_total", rule)))
    }

    /// Of those, the ones reported to its present life as leaked.
    pub(crate) fn leaks_told(&self) -> u64 {
        let samples = self.aggregator.metrics();
        samples.map_or(0, |samples| {
            whole(samples.sum_or_zero("weir_leaked_hits_total", &[]))
        })
    }

    /// What the data directory holds, read by an aggregator that no POP knows of.
    pub(crate) fn books_on_disk(&mut self) -> ByRule {
        let known = self.aggregator.address();
        self.aggregator.kill();
        self.aggregator.move_to(free_address());
        self.aggregator.restart();
        let books = self.books().unwrap_or_default();
        self.aggregator.kill();
        self.aggregator.move_to(known);
        books
    }
}

/// How the POPs see the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Away {
    /// Every source hears from it.
    None,
    /// Some do.
    Some,
    /// No source hears from it.
    All,
}

fn start_envoy(number: usize, region: SocketAddr, upstream: SocketAddr) -> Envoy {
    let filter = weir_filter(&format!(r#"{{"pop": "pop-{number}"}}"#));
    let setup = Setup::new(filter).workers(WORKERS);
    Envoy::start(setup.aggregator(region).upstream(upstream))
}

/// The rule file. On its own, each of the six workers may admit a sixth of the
/// limit: alone or together, the fleet stays near it. A request may wait for the
/// region longer than by default: on a busy machine an answer within 5 ms is luck,
/// and here a whole fleet shares the machine with its clients.
pub(crate) fn rules(plan: &Plan, limits: Limits) -> String {
    let window = plan.window_s;
    let alone = |limit: u64| limit / (POPS as u64 * u64::from(WORKERS));
    format!(
        "version: 1\n\
         domain: demo\n\
         trusted_proxies: [127.0.0.0/8]\n\
         rules:\n  \
         - name: per-key\n    \
           key: [header.x-api-key]\n    \
           limit: {key}\n    \
           window: {window}s\n    \
           algorithm: fixed_window\n    \
           local_cap: {key_alone}\n    \
           hold: 100ms\n  \
         - name: per-address\n    \
           match: {{ headers: {{ x-api-key: absent }} }}\n    \
           key: [ip]\n    \
           limit: {address}\n    \
           window: {window}s\n    \
           algorithm: fixed_window\n    \
           local_cap: {address_alone}\n    \
           hold: 100ms\n",
        key = limits.key,
        key_alone = alone(limits.key),
        address = limits.address,
        address_alone = alone(limits.address),
    )
}

fn of_rule(samples: &Samples, name: &str, rule: Rule) -> u64 {
    whole(samples.sum_or_zero(name, &[("rule", rule.name())]))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts, far below where a float stops counting"
)]
fn whole(value: f64) -> u64 {
    value as u64
}
