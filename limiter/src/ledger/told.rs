//! What a source is told of a key beside its lease, for its clients to hear.

use super::{
    lend::{HIT, Terms},
    loan::Claim,
    upstream::Stake,
};
use crate::{
    count::Count,
    rule::{Cost, Rule},
    time::{Micros, Timestamp},
    wire::LeaseGroup,
};

/// What a client is told.
pub(super) struct Told {
    /// Hits left.
    remaining: u64,
    /// Until the whole limit is there again.
    reset: Micros,
    /// Until a request could be admitted if nobody else came.
    retry: Micros,
}

impl Told {
    pub(super) fn by_the_books(rule: &Rule, count: &Count, claim: &Claim, now: Timestamp) -> Self {
        let left = count.remaining(&rule.quota, now);
        let retry = count.retry_after(&rule.quota, usual_cost(rule), now);
        Self {
            remaining: left.saturating_sub(claim.unreported / HIT),
            reset: count.reset_after(&rule.quota, now),
            retry: retry.unwrap_or_default(),
        }
    }

    /// As the aggregator above has it, if it has said: it knows of other regions, too.
    pub(super) fn by_stake(&mut self, stake: &Stake, claim: &Claim, now: Timestamp) {
        if !stake.answered {
            return;
        }
        let left = stake.lease.remaining;
        let left = left.saturating_sub(claim.unreported / HIT);
        self.remaining = self.remaining.min(left);
        self.reset = self.reset.max(stake.lease.resets.since(now));
        self.retry = self.retry.max(stake.lease.retry.since(now));
    }

    /// Adds a key to the columns of its rule's group: its terms, and this.
    pub(super) fn push(&self, lease: &mut LeaseGroup, terms: &Terms) {
        lease.tokens_micro.push(terms.tokens);
        lease.rate_micro.push(terms.rate);
        lease.ttl_ms.push(terms.ttl.get() / 1_000);
        lease.quiet_ms.push(terms.quiet.as_millis_ceil());
        lease.share_micro.push(terms.share);
        lease.penalty_ms.push(terms.penalty.as_millis_ceil());
        lease.remaining.push(self.remaining);
        lease.retry_ms.push(self.retry.as_millis_ceil());
        lease.reset_ms.push(self.reset.as_millis_ceil());
    }
}

/// What requests under a rule cost at the least, as far as it says.
const fn usual_cost(rule: &Rule) -> u64 {
    match rule.cost {
        Cost::Fixed(cost) => cost,
        Cost::ResponseHeader { upfront, .. } => upfront,
        Cost::RequestHeader { .. } => 1,
    }
}
