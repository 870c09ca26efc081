//! Regions under a global aggregator, each with light sources of its own, and networks
//! between all of them that the test has in its hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::aggregator::Aggregator;
use crate::binaries;
use crate::delay::Delay;
use crate::light::{Light, Sums, Traffic, sums};
use crate::site::{Site, acknowledged};
use crate::wait::wait_until;

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    /// The global aggregator, which has the rule file.
    pub global: Aggregator,
    /// The regions.
    pub regions: Vec<Region>,
}

/// One region below it.
#[derive(Debug)]
pub struct Region {
    /// What it is called.
    pub name: String,
    /// The network between it and the global aggregator.
    pub up: Delay,
    /// The region itself, with its sources next to it.
    pub site: Site,
}

impl Cluster {
    /// One region for each name, `each_way` from the global aggregator, with so many
    /// sources of this traffic. Returns once all sources run rules.
    #[must_use]
    pub fn start(
        rules: &str,
        names: &[&str],
        each_way: Duration,
        sources: usize,
        traffic: &Traffic,
    ) -> Self {
        Self::start_as(&binaries::weir(), rules, names, each_way, sources, traffic)
    }

    /// The same with another `weir`, of an earlier release say.
    #[must_use]
    pub fn start_as(
        weir: &Path,
        rules: &str,
        names: &[&str],
        each_way: Duration,
        sources: usize,
        traffic: &Traffic,
    ) -> Self {
        let start = |mut aggregator: Aggregator| {
            aggregator.run_as(weir.to_owned());
            aggregator.restart();
            aggregator
        };
        let global = Aggregator::prepare(&["--region", "global"]);
        global.set_rules(rules);
        let global = start(global);
        let region = |&name: &&str| {
            let up = Delay::start(global.address(), each_way);
            let aggregator = start(below(&up, name));
            Region {
                name: name.to_owned(),
                up,
                site: Site::before(aggregator, Duration::ZERO, sources, traffic),
            }
        };
        Self {
            regions: names.iter().map(region).collect(),
            global,
        }
    }

    /// Every source of every region.
    pub fn sources(&self) -> impl Iterator<Item = &Light> {
        self.regions.iter().flat_map(|region| &region.site.sources)
    }

    /// What came of all sources so far.
    #[must_use]
    pub fn sums(&self) -> Sums {
        sums(self.sources())
    }

    /// Waits until so many more hits are acknowledged in every region.
    pub fn wait_for_more(&self, hits: u64) {
        let acknowledged = |region: &Region| region.site.sums().acknowledged;
        let before: Vec<u64> = self.regions.iter().map(acknowledged).collect();
        wait_until("more hits are acknowledged in every region", || {
            let mut pairs = self.regions.iter().zip(&before);
            pairs.all(|(region, before)| acknowledged(region) >= before + hits)
        });
    }

    /// Hits of a rule in the global books; none while they cannot be asked.
    #[must_use]
    pub fn global_hits(&self, rule: &str) -> Option<u64> {
        let books = self.global.metrics()?.by("weir_hits_total", "rule");
        Some(books.get(rule).copied().unwrap_or(0))
    }

    /// What all sources were acknowledged under a rule.
    #[must_use]
    pub fn acknowledged(&self, rule: &str) -> u64 {
        let all: BTreeMap<String, u64> = acknowledged(self.sources());
        all.get(rule).copied().unwrap_or(0)
    }

    /// Lets all sources rest and compares: what was acknowledged is what the books of
    /// each region hold, and under this rule, which is global, what the global ones do.
    ///
    /// # Panics
    /// If they differ.
    pub fn compare_books(&self, global_rule: &str) {
        for region in &self.regions {
            region.site.compare_books();
        }
        let acknowledged = self.acknowledged(global_rule);
        wait_until("the global books have heard of all", || {
            self.global_hits(global_rule) >= Some(acknowledged)
        });
        assert_eq!(
            self.global_hits(global_rule),
            Some(acknowledged),
            "global books"
        );
    }
}

impl Region {
    /// Another machine in the place of this region's, not started yet: of the same
    /// name, with no data.
    #[must_use]
    pub fn fresh(&self) -> Aggregator {
        below(&self.up, &self.name)
    }

    /// Puts another machine, which runs, in the place of this region's.
    pub fn replace_by(&mut self, fresh: Aggregator) {
        self.site.link.lead_to(fresh.address());
        self.site.aggregator = fresh;
    }
}

fn below(up: &Delay, name: &str) -> Aggregator {
    let upstream = format!("http://{}", up.address());
    Aggregator::prepare(&["--upstream", &upstream, "--region", name])
}
