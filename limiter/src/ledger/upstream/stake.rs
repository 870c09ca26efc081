//! What this region holds of one key of a global limit: its lease, and where it stands
//! with the aggregator above.
//!
//! Amounts of tokens are millionths of a hit, instants this region's clock.

use crate::{
    borrow::{HIT, Lease, tokens},
    key::RuleId,
    time::{Micros, Timestamp},
    wire::{ClaimGroup, LeaseGroup},
};

/// How long a stake of which nothing is held or owed is remembered.
const MEMORY: Micros = Micros::from_secs(60);

/// How much later than twice the usual time an answer may come.
const JITTER: Micros = Micros::from_millis(20);

/// No rate of requests is taken from less time than this, in microseconds.
const SHORTEST: u64 = 100_000;

/// One key's stake.
#[derive(Clone, Copy, Debug)]
pub(in crate::ledger) struct Stake {
    pub(super) rule: RuleId,
    pub(in crate::ledger) lease: Lease,
    /// The last message with a claim; 0: none yet.
    message: u64,
    pub(in crate::ledger) claimed: Timestamp,
    /// Whether its answer is still to come.
    pub(in crate::ledger) open: bool,
    /// Whether one was ever answered.
    pub(in crate::ledger) answered: bool,
    /// Hits asked for since.
    offered: u64,
    /// Hits that this region ran short of.
    wanted: u64,
    /// Of `wanted`, what the last claim told of.
    told: u64,
    /// Whether the limit was exceeded, if that has a penalty; and whether that was told.
    exceeded: bool,
    exceeded_told: bool,
    /// Tokens that this region had in hand then, and had lent on.
    lent: i64,
    /// Tokens spent since; negative if more were given back.
    spent: i64,
    /// Whether the key is in the list of those to be claimed.
    pub(super) dirty: bool,
    /// Whether it is in the list of those to be claimed at once.
    pub(super) asking: bool,
    /// Whether it was claimed since it was last used.
    idle: bool,
    used: Timestamp,
}

impl Stake {
    pub(super) fn new(rule: RuleId, now: Timestamp) -> Self {
        Self {
            rule,
            lease: Lease::default(),
            message: 0,
            claimed: now,
            open: false,
            answered: false,
            offered: 0,
            wanted: 0,
            told: 0,
            exceeded: false,
            exceeded_told: false,
            lent: 0,
            spent: 0,
            dirty: false,
            asking: false,
            idle: false,
            used: now,
        }
    }

    /// Requests have asked for so many hits.
    pub(super) fn offer(&mut self, hits: u64, now: Timestamp) {
        if hits > 0 {
            self.offered = self.offered.saturating_add(hits);
            self.use_at(now);
        }
    }

    /// Hits were counted here; negative: given back.
    pub(super) fn spend(&mut self, hits: u64, returned: u64, now: Timestamp) {
        let spent = tokens(hits).saturating_sub(tokens(returned));
        self.lease.accrue(now);
        self.lease.tokens = self.lease.tokens.saturating_sub(spent);
        self.lease.remaining = self.lease.remaining.saturating_sub(hits);
        self.spent = self.spent.saturating_add(spent);
        self.use_at(now);
    }

    fn use_at(&mut self, now: Timestamp) {
        self.used = now;
        self.idle = false;
    }

    /// This region could not lend so many hits that were wanted.
    pub(super) fn lack(&mut self, hits: u64) {
        self.wanted = self.wanted.max(self.told.saturating_add(hits));
    }

    /// The limit was exceeded, and its rule has a penalty for that.
    pub(super) fn exceed(&mut self) {
        self.exceeded = true;
    }

    /// Whether to ask at once: it lacks hits, or what is `free` will not last as long as
    /// an answer takes; and an answer may be of use, and is not on its way.
    pub(super) fn has_to_ask(&self, free: i64, round_trip: Micros, now: Timestamp) -> bool {
        let quiet = now < self.lease.quiet && self.lease.is_live(now);
        if self.is_asked(round_trip, now) || (quiet && !self.exceeded) {
            return false;
        }
        let passed = now.since(self.claimed).get().max(SHORTEST);
        let likely = u128::from(self.offered) * u128::from(round_trip.get()) * 2;
        let likely = i128::from(HIT) * i128::try_from(likely / u128::from(passed)).unwrap_or(0);
        let low = self.offered > 0 && i128::from(free) < likely + i128::from(HIT);
        self.wanted > 0 || self.exceeded || low
    }

    /// Whether an answer is on its way. Another claim would make it worthless.
    pub(super) fn is_asked(&self, round_trip: Micros, now: Timestamp) -> bool {
        let patience = Micros::new(round_trip.get().saturating_mul(2)).plus(JITTER);
        self.open && now.since(self.claimed) < patience
    }

    /// Adds a claim to the columns of its rule's group. `unacked` hits are not in the
    /// books above, `batched` of them in this message; `lent` is what this region's
    /// sources may admit.
    pub(super) fn claim_into(
        &mut self,
        group: &mut ClaimGroup,
        message: u64,
        (unacked, batched): (u64, u64),
        lent: u64,
        now: Timestamp,
    ) {
        self.lease.accrue(now);
        let tokens = if self.lease.is_live(now) {
            u64::try_from(self.lease.tokens).unwrap_or(0)
        } else {
            0
        };
        // What is lent on may be spent already: it is not there to be given back.
        let hits = lent.div_ceil(HIT.unsigned_abs());
        let unreported = unacked.saturating_sub(batched).saturating_add(hits);
        group.held_micro.push(tokens.saturating_sub(lent));
        self.lent = i64::try_from(lent.min(tokens)).unwrap_or(i64::MAX);
        group.unreported.push(unreported);
        group.offered.push(self.offered);
        group.wanted.push(self.wanted);
        group.exceeded.push(u64::from(self.exceeded));
        self.idle = self.offered == 0 && self.spent == 0;
        self.told = self.wanted;
        self.exceeded_told = self.exceeded;
        self.offered = 0;
        self.spent = 0;
        self.message = message;
        self.claimed = now;
        self.open = true;
    }

    /// Whether the answer to `message` is the one that is waited for.
    pub(super) const fn awaits(&self, message: u64) -> bool {
        self.open && self.message == message
    }

    /// Takes in what the aggregator above says of the key at `place`.
    pub(super) fn take(&mut self, group: &LeaseGroup, place: usize, sent: Timestamp) {
        let lease = self.lease.granted(group, place, self.spent, sent);
        // What had been lent on was no part of what was claimed.
        let tokens = lease.tokens.saturating_sub(self.spent);
        let tokens = tokens.saturating_add(self.lent);
        self.lease = Lease { tokens, ..lease };
        self.wanted = self.wanted.saturating_sub(self.told);
        self.exceeded = self.exceeded && !self.exceeded_told;
        self.told = 0;
        self.exceeded_told = false;
        self.open = false;
        self.answered = true;
    }

    /// Whether the next flush has to speak of it even if nothing more comes: something
    /// is held that is to be given back, or what has come of it is still to be told.
    pub(super) const fn wants_another_flush(&self) -> bool {
        !self.idle
    }

    /// Whether forgetting it loses nothing.
    pub(in crate::ledger) fn is_over(&self, now: Timestamp) -> bool {
        let waits = self.dirty || self.asking || self.open;
        !waits && !self.lease.is_live(now) && now.since(self.used) >= MEMORY
    }
}
