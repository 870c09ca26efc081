//! What one central limiter would have done: it sees every request the moment
//! it arrives, and counts it at once. Of rules that each region keeps by itself
//! there is one for each region.

use limiter::{
    count::Count,
    request::Query,
    rule::{Rule, Scope},
    time::Timestamp,
};

use crate::{by_name::ByName, response::Response};

/// One count a counter, and nobody to share it with.
pub(crate) struct Exact {
    /// By region; those that all regions share are the first one's.
    counts: Vec<ByName<Count>>,
    admitted: u64,
}

/// Whose counts of a rule a request in this region is one of.
pub(crate) fn shared_by(rule: &Rule, region: usize) -> usize {
    if rule.scope == Scope::Global {
        0
    } else {
        region
    }
}

impl Exact {
    /// Nothing counted.
    pub(crate) fn new(regions: usize) -> Self {
        Self {
            counts: (0..regions).map(|_| ByName::default()).collect(),
            admitted: 0,
        }
    }

    /// Requests admitted.
    pub(crate) const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Decides a request: all of its rules must allow it, then all count it.
    pub(crate) fn decide(&mut self, query: &Query, region: usize, now: Timestamp) -> bool {
        let allowed = query.hits.iter().all(|hit| {
            let Some(rule) = query.rules.rule(hit.rule) else {
                return true;
            };
            let counts = &self.counts[shared_by(rule, region)];
            let count = counts.get(&hit.key).copied().unwrap_or_default();
            count.allows(&rule.quota, hit.cost, now)
        });
        if allowed {
            self.admitted += 1;
            self.count(query, region, now);
        }
        allowed
    }

    /// The response to a request that was admitted at `at` has come.
    pub(crate) fn settle(
        &mut self,
        query: &Query,
        region: usize,
        at: Timestamp,
        response: &Response,
        now: Timestamp,
    ) {
        for hit in &query.hits {
            let Some(rule) = query.rules.rule(hit.rule) else {
                continue;
            };
            let counts = &mut self.counts[shared_by(rule, region)];
            let count = counts.entry(hit.key).or_default();
            let cost = response.cost(rule, hit.cost);
            let window = rule.quota.window.index(at);
            count.give_back(&rule.quota, window, hit.cost.saturating_sub(cost), now);
            count.add(&rule.quota, cost.saturating_sub(hit.cost), now);
        }
    }

    fn count(&mut self, query: &Query, region: usize, now: Timestamp) {
        for hit in &query.hits {
            if let Some(rule) = query.rules.rule(hit.rule) {
                let counts = &mut self.counts[shared_by(rule, region)];
                let count = counts.entry(hit.key).or_default();
                count.add(&rule.quota, hit.cost, now);
            }
        }
    }
}
