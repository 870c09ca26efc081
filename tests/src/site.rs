//! One region and its light sources, with a network between them that the test has in
//! its hand; and in the end the books compared.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::aggregator::Aggregator;
use crate::delay::Delay;
use crate::light::{Light, Sums, Traffic, sums};
use crate::wait::wait_until;

/// A running region with sources.
#[derive(Debug)]
pub struct Site {
    /// The region's service.
    pub aggregator: Aggregator,
    /// The network before it.
    pub link: Delay,
    /// What asks it.
    pub sources: Vec<Light>,
}

impl Site {
    /// So many sources with this traffic, `each_way` from a service that runs already.
    /// Returns once all of them run rules.
    #[must_use]
    pub fn before(
        aggregator: Aggregator,
        each_way: Duration,
        sources: usize,
        traffic: &Traffic,
    ) -> Self {
        let link = Delay::start(aggregator.address(), each_way);
        let start = |_| Light::start(link.address(), traffic.clone());
        let site = Self {
            sources: (0..sources).map(start).collect(),
            aggregator,
            link,
        };
        wait_until("every source runs rules", || {
            site.sources.iter().all(|source| source.revision() > 0)
        });
        site
    }

    /// What came of all sources so far.
    #[must_use]
    pub fn sums(&self) -> Sums {
        sums(&self.sources)
    }

    /// Waits until so many more hits are acknowledged.
    pub fn wait_for_more(&self, hits: u64) {
        let enough = self.sums().acknowledged + hits;
        wait_until("more hits are acknowledged", || {
            self.sums().acknowledged >= enough
        });
    }

    /// Waits until all sources take their region to be away, or none does.
    pub fn wait_until_away(&self, away: bool) {
        wait_until(
            if away {
                "all are cut off"
            } else {
                "none is cut off"
            },
            || self.sources.iter().all(|source| source.is_away() == away),
        );
    }

    /// Hits in the books, by rule; none while the service is away.
    #[must_use]
    pub fn books(&self) -> Option<BTreeMap<String, u64>> {
        let metrics = self.aggregator.metrics()?;
        Some(metrics.by("weir_hits_total", "rule"))
    }

    /// Lets all sources rest, waits until what they admitted is acknowledged, and
    /// compares: what was acknowledged is what the books hold, rule by rule.
    ///
    /// # Panics
    /// If they differ.
    pub fn compare_books(&self) {
        self.settle();
        let books = self.books().expect("the service answers");
        assert_eq!(acknowledged(&self.sources), books, "{:?}", self.sums());
    }

    /// Lets all sources rest, and waits until what they admitted is acknowledged.
    pub fn settle(&self) {
        self.sources.iter().for_each(Light::rest);
        wait_until("all that was admitted is acknowledged", || {
            let sums = self.sums();
            sums.admitted == sums.acknowledged
        });
    }
}

/// Hits in the books of those aggregators that answer, by rule, summed.
#[must_use]
pub fn books<'a>(aggregators: impl IntoIterator<Item = &'a Aggregator>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for metrics in aggregators.into_iter().filter_map(Aggregator::metrics) {
        for (rule, hits) in metrics.by("weir_hits_total", "rule") {
            *all.entry(rule).or_default() += hits;
        }
    }
    all
}

/// What sources were acknowledged, by rule.
#[must_use]
pub fn acknowledged<'a>(sources: impl IntoIterator<Item = &'a Light>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for source in sources {
        for (rule, hits) in source.acknowledged_by_rule() {
            *all.entry(rule).or_default() += hits;
        }
    }
    all
}
