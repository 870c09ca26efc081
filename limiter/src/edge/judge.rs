//! One rule's answer to one request, from what is known here.

use super::{count::Count, entry::Entry};
use crate::{
    borrow::{Crowded, Lease, tokens},
    cold,
    decision::Tier,
    quota::Quota,
    rule::{Consistency, Fallback, Rule, Scope},
    time::{Micros, Timestamp},
};

/// What a client is told to wait at the least that the region has refused.
const LEAST_WAIT: Micros = Micros::from_secs(1);

/// What a rule says, before anything is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Admit.
    Yes(Tier),
    /// Deny; the wait after which it might be otherwise, if it ever is.
    No(Tier, Option<Micros>),
    /// The region has to be asked, and its answer waited for.
    Ask,
    /// The region has to be asked, but its answer would come too late: deny.
    Late,
}

impl Answer {
    /// Whether the request is turned away.
    pub(super) const fn denies(self) -> bool {
        matches!(self, Self::No(..) | Self::Late)
    }

    /// Whether it is turned away because the limit is spent, not because nobody
    /// could be asked.
    pub(super) const fn exceeds(self) -> bool {
        match self {
            Self::No(tier, _) => !matches!(tier, Tier::Fallback),
            Self::Yes(_) | Self::Ask | Self::Late => false,
        }
    }
}

/// The circumstances of a decision.
#[derive(Clone, Copy)]
pub(super) struct Circumstances<'a> {
    /// The host's clock.
    pub(super) now: Timestamp,
    /// The region's clock, or the host's while that is all there is.
    pub(super) region_now: Timestamp,
    /// Whether nobody can be asked.
    pub(super) away: bool,
    /// Whether the region has ever answered.
    pub(super) heard: bool,
    /// Sources that share the rule's limit.
    pub(super) sources: Count,
    /// Whether the request has waited for the region's answer.
    pub(super) waited: bool,
    /// Whether it will not wait (any longer).
    pub(super) impatient: bool,
    /// Whether the region knows that this source is too far away to wait.
    pub(super) far: bool,
    /// Which keys are crowded.
    pub(super) crowd: &'a Crowded,
}

/// Answers for one rule. Brings the entry up to date; spends nothing.
pub(super) fn judge(entry: &mut Entry, rule: &Rule, cost: u64, at: &Circumstances<'_>) -> Answer {
    if cost > rule.quota.capacity() {
        return Answer::No(Tier::Local, None);
    }
    if at.now < entry.penalty_until {
        return Answer::No(Tier::Local, Some(entry.penalty_until.since(at.now)));
    }
    match (rule.scope, rule.consistency) {
        (Scope::Pop, _) => own(entry, Some(&rule.quota), cost, at, Tier::Local),
        (_, Consistency::Edge) => told(entry, rule, cost, at),
        (_, Consistency::Leased) => lent(entry, rule, cost, at),
        (_, Consistency::Exact) => asked(entry, rule, cost, at),
    }
}

/// By the source's own count.
fn own(
    entry: &Entry,
    quota: Option<&Quota>,
    cost: u64,
    at: &Circumstances<'_>,
    tier: Tier,
) -> Answer {
    let Some(quota) = quota else {
        return Answer::No(tier, None);
    };
    if entry.local.allows(quota, cost, at.region_now) {
        Answer::Yes(tier)
    } else {
        Answer::No(tier, entry.local.retry_after(quota, cost, at.region_now))
    }
}

/// By the local cap and what the region last told.
fn told(entry: &Entry, rule: &Rule, cost: u64, at: &Circumstances<'_>) -> Answer {
    let lease = &entry.lease;
    if lease.is_live(at.now) && lease.remaining < cost {
        return Answer::No(Tier::Lease, Some(lease.resets.since(at.now)));
    }
    let tier = if at.away { Tier::Fallback } else { Tier::Lease };
    own(entry, rule.local_quota().as_ref(), cost, at, tier)
}

/// From what the region has lent, or ahead of it.
fn lent(entry: &mut Entry, rule: &Rule, cost: u64, at: &Circumstances<'_>) -> Answer {
    let lease = &mut entry.lease;
    lease.accrue(at.now);
    let live = lease.is_live(at.now);
    if live && lease.covers(cost) {
        return Answer::Yes(Tier::Lease);
    }
    if has_cold_credit(entry, rule, cost, at) {
        return Answer::Yes(Tier::Credit);
    }
    let lease = &entry.lease;
    let waits = entry.awaits_ack(at.now) && !at.impatient;
    if at.now < lease.quiet && live && !waits {
        return Answer::No(Tier::Lease, Some(patience(lease, cost, at.now)));
    }
    // One that has never answered may be late, or not be there at all.
    if at.away || (at.impatient && !at.heard) {
        return fall_back(entry, rule, cost, at);
    }
    if entry.claim.answered && !at.impatient {
        return Answer::Ask;
    }
    debt(entry, rule, cost, at)
}

/// Whether the key is known not to be crowded, and what this source has not yet
/// reported of it is within the cold credit.
fn has_cold_credit(entry: &Entry, rule: &Rule, cost: u64, at: &Circumstances<'_>) -> bool {
    let limit = rule.quota.capacity();
    let credit = if at.far {
        cold::credit(limit, at.sources.told)
    } else {
        cold::within(limit, rule.tolerance_ppm, at.sources.told)
    };
    let used = entry.report.unacked.saturating_add(cost);
    used <= credit && at.crowd.is_clear(entry.key, at.now)
}

/// Ahead of the region's word, within the source's part of the tolerance.
fn debt(entry: &Entry, rule: &Rule, cost: u64, at: &Circumstances<'_>) -> Answer {
    let tolerance = u128::from(rule.quota.limit.get()) * u128::from(rule.tolerance_ppm);
    let part = tolerance
        .checked_div(u128::from(at.sources.known.max(1)))
        .unwrap_or(0);
    let debt = i128::from(tokens(cost)) - i128::from(entry.lease.tokens.min(0));
    if u128::try_from(debt).is_ok_and(|debt| debt <= part) {
        Answer::Yes(Tier::Debt)
    } else if at.impatient {
        Answer::Late
    } else {
        Answer::Ask
    }
}

/// By the region, each time anew.
fn asked(entry: &mut Entry, rule: &Rule, cost: u64, at: &Circumstances<'_>) -> Answer {
    entry.lease.accrue(at.now);
    let live = entry.lease.is_live(at.now);
    if at.waited && live && entry.lease.covers(cost) {
        return Answer::Yes(Tier::Region);
    }
    if entry.awaits_ack(at.now) && !at.impatient {
        return Answer::Ask;
    }
    if live && at.now < entry.lease.quiet {
        return Answer::No(Tier::Region, Some(patience(&entry.lease, cost, at.now)));
    }
    if at.away || at.impatient {
        return fall_back(entry, rule, cost, at);
    }
    let refused = at.waited && !entry.claim.open && entry.claim.wanted == 0;
    if refused {
        let wait = patience(&entry.lease, cost, at.now).max(LEAST_WAIT);
        return Answer::No(Tier::Region, Some(wait));
    }
    Answer::Ask
}

/// With nobody to ask: the share last named, or the local cap.
fn fall_back(entry: &mut Entry, rule: &Rule, cost: u64, at: &Circumstances<'_>) -> Answer {
    let choice = if entry.claim.answered {
        rule.on_failure.lease_expired
    } else {
        rule.on_failure.no_lease
    };
    if choice == Fallback::Deny {
        return Answer::No(Tier::Fallback, Some(Micros::from_secs(1)));
    }
    let share = entry.lease.share;
    if share > 0 {
        entry.lease.accrue_share(at.now);
        if !entry.lease.covers(cost) {
            return Answer::No(Tier::Fallback, entry.lease.wait(cost, share));
        }
    }
    own(entry, rule.local_quota().as_ref(), cost, at, Tier::Fallback)
}

/// How long a denied request had better wait: until its source's next token, or
/// until it is of use to ask.
fn patience(lease: &Lease, cost: u64, now: Timestamp) -> Micros {
    let quiet = lease.quiet.since(now);
    lease
        .wait(cost, lease.rate)
        .map_or(quiet, |wait| wait.min(quiet.max(wait)))
}
