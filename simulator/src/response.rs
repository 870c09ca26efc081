//! What the services behind the fleet answer: when, whether they failed, and what it
//! has cost.

use limiter::{
    edge::Answered,
    rule::{Cost, Rule, StatusMatch},
    time::{Micros, Timestamp},
};

use crate::chance::Chance;

/// The header that says what a request has cost.
pub(crate) const HEADER: &str = "x-cost";

/// How services answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The longest that one takes.
    pub(crate) within: Micros,
    /// Share of requests that fail, and cost nothing.
    pub(crate) failing: f64,
    /// The most that a request costs, in hits.
    pub(crate) cost_max: u64,
}

/// What one request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) at: Timestamp,
    pub(crate) failed: bool,
    pub(crate) cost: u64,
}

impl Manner {
    /// The answer to a request of `now`.
    pub(crate) fn answer(&self, chance: &mut Chance, now: Timestamp) -> Response {
        Response {
            at: now.after(chance.within(self.within)),
            failed: chance.hits(self.failing),
            cost: chance.below(self.cost_max.saturating_add(1)),
        }
    }

    /// Has a rule heed what services answer.
    pub(crate) fn heed(&self, rule: &mut Rule) {
        if self.failing > 0.0 {
            rule.refund = vec![StatusMatch::Class(5)];
        }
        if self.cost_max > 0 {
            let upfront = rule.cost.most_upfront();
            rule.cost = Cost::ResponseHeader {
                name: HEADER.to_owned(),
                max: self.cost_max.max(upfront),
                upfront,
                default: 0,
            };
        }
    }
}

impl Response {
    /// What a request that has spent `upfront` costs in all under a rule: worked out
    /// apart from the limiter.
    pub(crate) const fn cost(&self, rule: &Rule, upfront: u64) -> u64 {
        if self.failed && !rule.refund.is_empty() {
            return 0;
        }
        match rule.cost {
            Cost::ResponseHeader { .. } => self.cost,
            Cost::Fixed(_) | Cost::RequestHeader { .. } => upfront,
        }
    }
}

impl Answered for Response {
    fn status(&self) -> u16 {
        if self.failed { 503 } else { 200 }
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        (name == HEADER).then(|| self.cost.to_string().into_bytes())
    }
}
