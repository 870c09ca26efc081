//! What one central limiter would have done: it sees every request the moment
//! it arrives, and counts it at once.

use std::collections::HashMap;

use limiter::{count::Count, key::CounterKey, request::Query, time::Timestamp};

use crate::response::Response;

/// One count a counter, and nobody to share it with.
#[derive(Default)]
pub(crate) struct Exact {
    counts: HashMap<CounterKey, Count>,
    admitted: u64,
}

impl Exact {
    /// Requests admitted.
    pub(crate) const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Decides a request: all of its rules must allow it, then all count it.
    pub(crate) fn decide(&mut self, query: &Query, now: Timestamp) -> bool {
        let allowed = query.hits.iter().all(|hit| {
            let count = self.counts.get(&hit.key).copied().unwrap_or_default();
            let rule = query.rules.rule(hit.rule);
            rule.is_none_or(|rule| count.allows(&rule.quota, hit.cost, now))
        });
        if allowed {
            self.admitted += 1;
            self.count(query, now);
        }
        allowed
    }

    /// The response to a request that was admitted at `at` has come.
    pub(crate) fn settle(
        &mut self,
        query: &Query,
        at: Timestamp,
        response: &Response,
        now: Timestamp,
    ) {
        for hit in &query.hits {
            let Some(rule) = query.rules.rule(hit.rule) else {
                continue;
            };
            let count = self.counts.entry(hit.key).or_default();
            let cost = response.cost(rule, hit.cost);
            let window = rule.quota.window.index(at);
            count.give_back(&rule.quota, window, hit.cost.saturating_sub(cost), now);
            count.add(&rule.quota, cost.saturating_sub(hit.cost), now);
        }
    }

    fn count(&mut self, query: &Query, now: Timestamp) {
        for hit in &query.hits {
            if let Some(rule) = query.rules.rule(hit.rule) {
                let count = self.counts.entry(hit.key).or_default();
                count.add(&rule.quota, hit.cost, now);
            }
        }
    }
}
