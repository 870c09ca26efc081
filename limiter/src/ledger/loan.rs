//! One loan: what a source may admit of a key, how much of that counts as
//! spent, and what its traffic has been like.

use super::{
    fair::{ample, per_second, share},
    lend::{HIT, Terms},
};
use crate::time::{Micros, Timestamp};

/// How long after its expiry a loan still counts as spent: a source reports what
/// it spent within a flush interval, and once more if the report is lost.
const GRACE: Micros = Micros::from_millis(2_500);

/// How fast an estimate of demand follows what is reported.
const DEMAND_MEMORY: Micros = Micros::from_millis(1_500);

/// So many hits tell what a demand is; where they are rare, it is remembered for
/// longer.
const DEMAND_HITS: u64 = 3 * HIT;

/// How long it is remembered at the most.
const DEMAND_MEMORY_MAX: Micros = Micros::from_secs(10);

/// What a source has spent longer ago than this it has reported.
const REPORTED: Micros = Micros::from_millis(1_100);

/// How long the requests of a first claim are taken to have been coming.
const FIRST_SEEN: Micros = Micros::from_secs(2);

/// So many hits expected and none asked for: the traffic has gone elsewhere.
const SURPRISE: u64 = 3 * HIT;

/// How long a question may be on its way.
const UNDER_WAY: Micros = Micros::from_millis(200);

/// What one source holds of one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loan {
    pub(super) source: u64,
    /// The message that was answered with it.
    pub(super) message: u64,
    /// When it was made.
    at: Timestamp,
    /// What it allows.
    pub(super) terms: Terms,
    /// Millionths of hits admitted and not yet in the books.
    unreported: u64,
    /// What the source still held of the loan before, in millionths.
    held: u64,
    /// What requests were waiting for, in millionths.
    waiting: u64,
    /// Millionths of hits asked for each second.
    demand: u64,
    /// Whether its source is a region.
    region: bool,
}

/// A source's claim on a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claim {
    pub(super) source: u64,
    pub(super) message: u64,
    /// Millionths of a hit, as all amounts here.
    pub(super) held: u64,
    pub(super) unreported: u64,
    pub(super) offered: u64,
    pub(super) wanted: u64,
    pub(super) waiting: u64,
    /// Whether its requests do not wait for an answer: the region is too far.
    pub(super) impatient: bool,
    /// Whether the source is a region.
    pub(super) region: bool,
    /// How long an answer takes to come; zero: not known.
    pub(super) round_trip: Micros,
    /// Whether requests were denied because the limit was spent.
    pub(super) exceeded: bool,
}

impl Loan {
    /// What a claim was answered with.
    pub(super) const fn new(claim: &Claim, terms: Terms, traffic: Traffic, now: Timestamp) -> Self {
        Self {
            source: claim.source,
            message: claim.message,
            at: now,
            terms,
            unreported: claim.unreported,
            held: claim.held,
            waiting: claim.waiting,
            demand: traffic.demand,
            region: claim.region,
        }
    }

    /// The most that can have been admitted on it and is not in the books.
    pub(super) fn lent(&self, now: Timestamp) -> u64 {
        if self.is_over(now) {
            return 0;
        }
        self.unreported.saturating_add(self.allowed(now))
    }

    /// What it has come to by now.
    fn allowed(&self, now: Timestamp) -> u64 {
        let lasted = now.since(self.at).min(self.terms.ttl);
        let paid = per_second(self.terms.rate, lasted);
        self.terms.tokens.saturating_add(paid)
    }

    /// Whether its source's traffic has gone: it would have spent the loan and asked
    /// for more by now.
    fn has_stopped(&self, now: Timestamp) -> bool {
        let may_ask = self.at.after(self.terms.quiet).after(UNDER_WAY);
        let wanted = per_second(self.demand, now.since(may_ask));
        wanted >= self.allowed(now).saturating_add(SURPRISE)
    }

    /// What its source has likely not spent yet: of a rate, what it had not spent
    /// last time either; of tokens, those that nobody was waiting for and that
    /// its demand has not come to since.
    pub(super) fn idle(&self, now: Timestamp) -> u64 {
        if !self.is_live(now) {
            return 0;
        }
        if self.has_stopped(now) {
            return self.allowed(now);
        }
        if self.terms.rate > 0 {
            return self.held.min(self.terms.tokens);
        }
        let left = self.terms.tokens.saturating_sub(self.waiting);
        let silent = now.since(self.at).min(REPORTED);
        let spent = per_second(self.demand, silent);
        // One that may ask does so when it comes to its last hit.
        let last = if self.terms.quiet == Micros::ZERO {
            left.min(HIT)
        } else {
            0
        };
        left.saturating_sub(spent).max(last)
    }

    /// What comes in on it each second.
    pub(super) fn rate(&self, now: Timestamp) -> u64 {
        if self.is_live(now) {
            self.terms.rate
        } else {
            0
        }
    }

    /// How long its source is still kept from asking.
    pub(super) fn quiet(&self, now: Timestamp) -> Micros {
        self.at.after(self.terms.quiet).since(now)
    }

    fn is_live(&self, now: Timestamp) -> bool {
        now.since(self.at) < self.terms.ttl
    }

    /// Whether it no longer counts.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.at) >= self.terms.ttl.plus(GRACE)
    }

    /// The same with something to spare.
    pub(super) fn ample(&self, now: Timestamp) -> u64 {
        ample(self.demand(now), self.region)
    }

    /// The demand of its source, which fades when it is not heard of.
    pub(super) fn demand(&self, now: Timestamp) -> u64 {
        let silent = now.since(self.at).get();
        let patience = DEMAND_MEMORY.get();
        if self.has_stopped(now) {
            return 0;
        }
        if silent <= patience {
            self.demand
        } else {
            share(self.demand, patience, silent)
        }
    }
}

/// What a source's requests are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Millionths of hits asked for each second.
    pub(super) demand: u64,
    /// Whether they do not wait for an answer: the region is too far.
    pub(super) impatient: bool,
    /// Whether they are those of a region.
    pub(super) region: bool,
}

impl Traffic {
    /// As it was before, once what a claim says is taken in.
    pub(super) fn after(before: Option<&Loan>, claim: &Claim, now: Timestamp) -> Self {
        Self {
            demand: demand_after(before, claim, now),
            impatient: claim.impatient,
            region: claim.region,
        }
    }
}

/// The demand of a source, once what it reports is taken in.
fn demand_after(before: Option<&Loan>, claim: &Claim, now: Timestamp) -> u64 {
    let Some(loan) = before else {
        return share(claim.offered, 1_000_000, FIRST_SEEN.get());
    };
    let passed = now.since(loan.at).get();
    let expected = per_second(loan.demand, now.since(loan.at));
    if claim.offered == 0 && expected >= SURPRISE {
        return 0;
    }
    let as_before = claim.offered <= expected.saturating_mul(2).saturating_add(2 * HIT);
    let memory = if as_before {
        let few = share(DEMAND_HITS, 1_000_000, loan.demand);
        few.clamp(DEMAND_MEMORY.get(), DEMAND_MEMORY_MAX.get())
    } else {
        DEMAND_MEMORY.get()
    };
    let faded = share(loan.demand, memory, memory.saturating_add(passed));
    let fresh = share(claim.offered, 1_000_000, memory.saturating_add(passed));
    faded.saturating_add(fresh)
}
