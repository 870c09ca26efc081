//! What a source knows of one key.
//!
//! Amounts of tokens are millionths of a hit. Instants are the host's clock.

use super::{judge::Answer, outbox::Delta, table::Slot};
use crate::{
    borrow::{HIT, Lease},
    count::Count,
    decision::Tier,
    key::{CounterKey, RuleId},
    time::{Micros, Timestamp},
    window::WindowIndex,
    wire::ClaimGroup,
};

/// A gap between two requests that is so many times the time to the next flush
/// makes it unlikely that one comes before that.
const RARE: u64 = 2;

/// No rate of requests is taken from less time than this, in microseconds, unless
/// an answer takes longer than a request can wait.
const SHORTEST: u64 = 200_000;

/// One key's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) key: CounterKey,
    pub(super) rule: RuleId,
    /// The rule's place in the rules in force; none once it is gone.
    pub(super) place: Option<u32>,
    /// What this source admitted, for caps that are its own.
    pub(super) local: Count,
    pub(super) lease: Lease,
    pub(super) report: Report,
    pub(super) claim: Claim,
    /// Until when every request is denied.
    pub(super) penalty_until: Timestamp,
    /// Used since the table's hand last came by.
    pub(super) touched: bool,
    /// The decision it was last part of.
    pub(super) turn: u64,
    /// When it was last spent of.
    pub(super) spent: Timestamp,
    /// Whether the region counts this key, too.
    pub(super) shared: bool,
}

/// Hits admitted and not yet acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// Those in no batch yet, and the window they were counted in.
    pub(super) pending: u64,
    pub(super) window: WindowIndex,
    /// Of `pending`: admitted because nobody could be asked.
    pub(super) leaked: u64,
    /// Hits of that window that were reported, are given back, and are in no batch
    /// as such yet.
    pub(super) returned: u64,
    /// All of them, in a batch or not.
    pub(super) unacked: u64,
    /// Of `unacked`: in a batch of this message.
    pub(super) batched: (u64, u64),
}

/// What the region is told of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claim {
    /// The last message with a claim; 0: none yet.
    pub(super) message: u64,
    /// When it was made.
    pub(super) at: Timestamp,
    /// Whether its answer is still to come.
    pub(super) open: bool,
    pub(super) told: Told,
    /// Whether the region has ever answered one.
    pub(super) answered: bool,
    /// Whether hits were on their way in the batch of an earlier message when it was
    /// made: the region may have counted them twice in its answer.
    pub(super) crossed: bool,
    /// Hits asked for since.
    pub(super) offered: u64,
    /// Hits that it ran short of.
    pub(super) wanted: u64,
    /// Of `wanted`: hits that requests are waiting for.
    pub(super) waiting: u64,
    /// Whether the limit was found exceeded, if that has a penalty.
    pub(super) exceeded: bool,
    /// Tokens spent since; negative if more were given back.
    pub(super) spent: i64,
    /// Tokens that responses have cost since, beyond what was in hand.
    pub(super) overspent: i64,
    /// Whether the key is in the list of those to be claimed at once.
    pub(super) asking: bool,
    /// Whether it is in the list of those to be claimed with the next flush.
    pub(super) dirty: bool,
    /// Whether it is in the list of those that cannot wait for it.
    pub(super) hasty: bool,
    /// Whether it has been claimed since it was last used.
    pub(super) idle: bool,
}

/// What the latest claim told of: no longer news once it is answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) wanted: u64,
    pub(super) waiting: u64,
    pub(super) exceeded: bool,
}

impl Entry {
    pub(super) fn new(key: CounterKey, rule: RuleId, place: u32, shared: bool) -> Self {
        Self {
            key,
            rule,
            place: Some(place),
            local: Count::default(),
            lease: Lease::default(),
            report: Report::default(),
            claim: Claim::default(),
            penalty_until: Timestamp::default(),
            touched: true,
            turn: 0,
            spent: Timestamp::default(),
            shared,
        }
    }

    /// Whether forgetting it loses nothing and lets nobody off: neither is it part
    /// of the decision that is being made.
    pub(super) fn is_evictable(&self, turn: u64, now: Timestamp) -> bool {
        let claimed = self.claim.dirty || self.claim.asking || self.claim.open;
        let over = now < self.lease.quiet || (self.lease.share > 0 && self.lease.is_live(now));
        let punished = now < self.penalty_until;
        self.turn != turn && self.report.is_empty() && !claimed && !over && !punished
    }

    /// Notes admitted hits for the next batch. If they belong to another window
    /// than those noted before, returns these, which then stand alone.
    pub(super) fn report_hits(
        &mut self,
        window: WindowIndex,
        hits: u64,
        leaked: bool,
        slot: Slot,
    ) -> Option<Delta> {
        if !self.shared {
            return None;
        }
        let late = if self.report.window == window {
            None
        } else {
            self.take_pending(slot)
        };
        let report = &mut self.report;
        report.window = window;
        report.pending = report.pending.saturating_add(hits);
        report.unacked = report.unacked.saturating_add(hits);
        report.leaked = report.leaked.saturating_add(if leaked { hits } else { 0 });
        late
    }

    /// What is in no batch yet, to be put into one.
    pub(super) fn take_pending(&mut self, slot: Slot) -> Option<Delta> {
        let report = &mut self.report;
        let delta = Delta {
            slot,
            key: self.key,
            rule: self.rule,
            window: report.window,
            hits: report.pending,
            leaked: report.leaked,
            returned: report.returned,
        };
        report.pending = 0;
        report.leaked = 0;
        report.returned = 0;
        (delta.hits > 0 || delta.returned > 0).then_some(delta)
    }

    /// Notes that hits are in a batch of this message.
    pub(super) const fn note_batched(&mut self, message: u64, hits: u64) {
        let (last, sum) = self.report.batched;
        let sum = if last == message { sum } else { 0 };
        self.report.batched = (message, sum.saturating_add(hits));
    }

    /// Whether a spent lease should be filled up before it runs out: it is one
    /// of those that may be asked for, and what is left will not do for the time
    /// an answer takes. One that is asked for so rarely that a flush comes first
    /// (within `flush`; none where no request can wait) is filled up by that.
    pub(super) fn runs_low(
        &mut self,
        answer: Answer,
        rtt: Micros,
        flush: Option<Micros>,
        now: Timestamp,
    ) -> bool {
        let gap = now.since(self.spent).get();
        self.spent = now;
        if !self.shared || self.claim.open || now < self.lease.quiet {
            return false;
        }
        let rare = flush.is_some_and(|flush| gap > flush.get().saturating_mul(RARE));
        let shortest = flush.map_or(rtt.get().max(1), |_| SHORTEST);
        let passed = now.since(self.claim.at).get().max(shortest);
        let due = u128::from(self.claim.offered) * u128::from(rtt.get()) * 2 / u128::from(passed);
        let low = i64::try_from(due.saturating_add(1))
            .unwrap_or(i64::MAX)
            .saturating_mul(HIT);
        match answer {
            Answer::Yes(Tier::Lease) => self.lease.tokens < low && !rare,
            Answer::Yes(Tier::Debt) => true,
            // A second one before the region has heard of the first.
            Answer::Yes(Tier::Credit) => self.claim.offered >= 2,
            _ => false,
        }
    }

    /// Hits left over all sources, as far as is known here.
    pub(super) fn known_remaining(&self) -> u64 {
        let held = u64::try_from(self.lease.tokens / HIT).unwrap_or(0);
        self.lease.remaining.max(held)
    }

    /// Takes the key off the lists it is on, to be claimed by `message`; whether
    /// it has not been already.
    pub(super) const fn start_claim(&mut self, message: u64) -> bool {
        self.claim.asking = false;
        let fresh = self.claim.message != message;
        self.claim.message = message;
        fresh
    }

    /// Adds a claim to the columns of its rule's group.
    pub(super) fn claim_into(&mut self, group: &mut ClaimGroup, now: Timestamp) {
        self.lease.accrue(now);
        let live = self.lease.is_live(now);
        let held = if live {
            u64::try_from(self.lease.tokens).unwrap_or(0)
        } else {
            0
        };
        let batched = match self.report.batched {
            (message, hits) if message == self.claim.message => hits,
            _ => 0,
        };
        group.held_micro.push(held);
        group
            .unreported
            .push(self.report.unacked.saturating_sub(batched));
        self.claim.crossed = self.report.on_their_way() > batched;
        group.offered.push(self.claim.offered);
        group.wanted.push(self.claim.wanted);
        group.waiting.push(self.claim.waiting);
        let exceeded = self.claim.exceeded && now < self.penalty_until;
        group.exceeded.push(u64::from(exceeded));
        self.claim.idle = self.claim.offered == 0;
        self.claim.offered = 0;
        self.claim.spent = 0;
        self.claim.overspent = 0;
        self.claim.at = now;
        self.claim.open = true;
        self.claim.told = Told {
            wanted: self.claim.wanted,
            waiting: self.claim.waiting,
            exceeded,
        };
    }

    /// Notes that a request lacks hits, and whether it waits for them. Returns
    /// whether the region has to be asked: unless it has been already, and may still
    /// answer.
    pub(super) fn lacks(&mut self, cost: u64, waits: bool, anew: bool, overdue: Timestamp) -> bool {
        let claim = &mut self.claim;
        let forgotten = !claim.open && claim.wanted < cost;
        if anew || forgotten {
            claim.wanted = claim.wanted.saturating_add(cost);
            claim.waiting = claim.waiting.saturating_add(if waits { cost } else { 0 });
        }
        !claim.open || claim.told.wanted == 0 || claim.at < overdue
    }

    /// Takes in that the claim was answered: what it told of is no longer lacking.
    pub(super) const fn settle_claim(&mut self) {
        let claim = &mut self.claim;
        claim.wanted = claim.wanted.saturating_sub(claim.told.wanted);
        claim.waiting = claim.waiting.saturating_sub(claim.told.waiting);
        claim.exceeded = claim.exceeded && !claim.told.exceeded;
        claim.open = false;
        claim.answered = true;
    }

    /// Whether the answer to the latest claim may be better once a batch that it crossed
    /// is acknowledged: until then it is of use to wait, and of none to ask.
    pub(super) fn awaits_ack(&self, now: Timestamp) -> bool {
        self.claim.crossed && !self.claim.open && now < self.lease.quiet
    }

    /// Once both the claim is answered and the batch that it crossed is acknowledged, it
    /// is of use to ask again.
    pub(super) fn settle_crossing(&mut self, now: Timestamp) {
        if self.claim.crossed && !self.claim.open && self.report.on_their_way() == 0 {
            self.claim.crossed = false;
            self.lease.quiet = self.lease.quiet.min(now);
        }
    }

    /// Whether the next flush has to speak of this key even if nothing more
    /// comes: hits are still to be batched, or a lease is to be given back.
    pub(super) const fn wants_another_flush(&self) -> bool {
        self.report.pending > 0 || self.report.returned > 0 || !self.claim.idle
    }
}

impl Report {
    /// Hits in batches that are not acknowledged.
    const fn on_their_way(&self) -> u64 {
        self.unacked.saturating_sub(self.pending)
    }

    /// Whether nothing is left to be told or acknowledged.
    pub(super) const fn is_empty(&self) -> bool {
        self.unacked == 0 && self.returned == 0
    }
}
