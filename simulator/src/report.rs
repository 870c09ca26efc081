//! What came of a scenario, and whether that is what had to.

use serde::Serialize;

use crate::{
    scenario::{Bounds, Scenario},
    world::Run,
};

mod region;
mod table;

pub use region::RegionReport;
pub(crate) use table::table;

/// The figures of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Requests that arrived.
    pub requests: u64,
    /// Requests that were admitted.
    pub admitted: u64,
    /// Requests that one central exact limiter would have admitted.
    pub exact: u64,
    /// `admitted` to `exact`, less one.
    pub error: f64,
    /// Keys of which the exact limiter denied a request; those of each region apart.
    pub contested_keys: u64,
    /// `error` of those keys alone.
    pub contested_error: f64,
    /// What was admitted too much or too little of each of those keys, to all that
    /// the exact limiter admitted of them.
    pub contested_apart: f64,
    /// The most that any window of any key admitted over its limit, as part of that.
    pub over: f64,
    /// Share of requests that waited for the region.
    pub held: f64,
    /// Messages sent because a source had run out, per request.
    pub asks_per_request: f64,
    /// Counts reported to the region, per request.
    pub flush_entries_per_request: f64,
    /// Hits admitted because nobody could be asked.
    pub leaked: u64,
    /// The same, by the sources' own metric.
    pub leak_metric: u64,
    /// Acknowledged hits that are missing in the region's books.
    pub lost_hits: u64,
    /// Hits that the region's books have more often than they happened.
    pub double_hits: u64,
    /// What each region had to do.
    pub regions: Vec<RegionReport>,
    /// The same of the aggregator above them, for the requests of one region.
    pub global: Option<RegionReport>,
    /// Whether all bounds and all checkers held.
    pub pass: bool,
    /// What did not.
    pub failures: Vec<String>,
    /// Whether nothing was meant to go wrong.
    #[serde(skip)]
    pub healthy: bool,
}

impl Report {
    /// The figures of a run, held against the bounds of its scenario.
    #[allow(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    pub(crate) fn new(scenario: &Scenario, run: Run) -> Self {
        let (tally, contested) = (run.tally, run.contested);
        let (most, least) = (contested.admitted, contested.exact);
        let requests = tally.requests as f64 / scenario.regions as f64;
        let regions = run.loads.iter().map(|(load, held)| {
            let seconds = scenario.duration_s;
            RegionReport::new(load, *held, seconds, requests)
        });
        let mut regions: Vec<RegionReport> = regions.collect();
        let global = scenario.global.and_then(|_| regions.pop());
        let mut report = Self {
            name: scenario.name.clone(),
            requests: tally.requests,
            admitted: tally.admitted,
            exact: run.exact,
            error: share(tally.admitted, run.exact) - share(run.exact, run.exact),
            over: run.over,
            contested_keys: contested.keys,
            contested_error: share(most, least) - share(least, least),
            contested_apart: share(contested.apart, least),
            regions,
            global,
            held: share(tally.held, tally.requests),
            asks_per_request: share(tally.reported.asks, tally.requests),
            flush_entries_per_request: share(tally.reported.deltas, tally.requests),
            leaked: tally.leaked,
            leak_metric: tally.reported.leaked,
            lost_hits: run.difference.lost,
            double_hits: run.difference.double,
            pass: false,
            failures: Vec::new(),
            healthy: scenario.faults.is_empty(),
        };
        report.failures = report.broken(&scenario.bounds);
        report.failures.extend(run.violations);
        report.pass = report.failures.is_empty();
        report
    }

    /// The bounds that do not hold, in words.
    fn broken(&self, bounds: &Bounds) -> Vec<String> {
        let leaks_agree = self.leaked == self.leak_metric;
        let leaks = (bounds.leak_reported == Some(true) && !leaks_agree).then(|| {
            format!(
                "leak_metric {} is not leaked {}",
                self.leak_metric, self.leaked
            )
        });
        let lost = above("lost_hits", self.lost_hits, bounds.lost_hits);
        let double = above("double_hits", self.double_hits, bounds.double_hits);
        let asks = self.asks_per_request;
        let contested = self.contested_error;
        [
            above("error", self.error, bounds.error_max),
            below("error", self.error, bounds.error_min),
            above("contested_error", contested, bounds.contested_error_max),
            below("contested_error", contested, bounds.contested_error_min),
            above("over", self.over, bounds.over_max),
            above("held", self.held, bounds.held_max),
            above("asks_per_request", asks, bounds.asks_per_request_max),
            lost,
            double,
            leaks,
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn above<T: PartialOrd + std::fmt::Display>(name: &str, is: T, max: Option<T>) -> Option<String> {
    let max = max.filter(|max| is > *max)?;
    Some(format!("{name} {is:.5} is above {max}"))
}

fn below(name: &str, is: f64, min: Option<f64>) -> Option<String> {
    let min = min.filter(|min| is < *min)?;
    Some(format!("{name} {is:.5} is below {min}"))
}

/// One to the other; to nothing: itself.
#[allow(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
