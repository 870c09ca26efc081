//! By the region's books, what is lent never exceeds what is left of the limit
//! and its tolerance.

use std::collections::HashMap;

use limiter::{
    key::{CounterKey, RuleId},
    ledger::Ledger,
    quota::{Algorithm, Quota},
    rule::Scope,
    time::{Micros, Timestamp},
    wire::LeaseGroup,
};

use crate::{region::Synced, setup::Setup};

/// Looks at every loan as it is made. Later the sum may shift: a source that was
/// cut off reports what it admitted meanwhile.
pub(crate) struct Limits {
    /// Whether global rules are only lent on here: what there is of them is told by
    /// the aggregator above, and not by these books.
    lends_on: bool,
    /// Of windows that are shorter than this each region has its part as it comes in,
    /// whatever has been spent by these books: they learn of it too late.
    short: Micros,
    /// The latest message of each source. One that comes again, or late, is told
    /// again what it was told, and makes no loan.
    latest: HashMap<u64, u64>,
}

/// A window is short if it is over within so many round trips.
const ROUND_TRIPS: u64 = 16;

/// In what time the whole limit is there again.
fn refill(quota: &Quota) -> Micros {
    match quota.algorithm {
        Algorithm::FixedWindow | Algorithm::SlidingWindow => quota.window.longest(),
        Algorithm::TokenBucket => quota.memory(),
    }
}

impl Limits {
    /// Of a region's books, or of those above.
    pub(crate) fn new(place: usize, setup: &Setup) -> Self {
        let above = setup.global.filter(|_| place == setup.regions);
        let round_trip = above.map_or(Micros::ZERO, |path| {
            let late = setup.global_faults.latest();
            path.round_trip.plus(path.jitter).plus(late)
        });
        Self {
            lends_on: setup.global.is_some() && place < setup.regions,
            short: Micros::new(round_trip.get() * ROUND_TRIPS),
            latest: HashMap::new(),
        }
    }

    /// Whether a message has led to more being lent than there was.
    pub(crate) fn synced(
        &mut self,
        synced: &Synced,
        ledger: &Ledger,
        now: Timestamp,
    ) -> Result<(), String> {
        let latest = self.latest.entry(synced.request.source).or_default();
        if synced.request.message <= *latest {
            return Ok(());
        }
        *latest = synced.request.message;
        let mut groups = synced.reply.message.leases.iter();
        let found = groups.find_map(|group| {
            let rule = ledger.rules().by_id(RuleId(group.rule))?;
            let spec = ledger.rules().rule(rule)?;
            let is_global = spec.scope == Scope::Global;
            if is_global && (self.lends_on || refill(&spec.quota) < self.short) {
                return None;
            }
            let mut made = made(group);
            made.find_map(|key| overlent(ledger, rule, key, now))
        });
        found.map_or(Ok(()), Err)
    }
}

/// The keys that tokens were lent of.
fn made(group: &LeaseGroup) -> impl Iterator<Item = CounterKey> {
    let keys = group.keys.as_chunks::<16>().0.iter();
    let made = keys
        .zip(&group.tokens_micro)
        .filter(|(_, tokens)| **tokens > 0);
    made.map(|(key, _)| CounterKey::from_bytes(*key))
}

fn overlent(ledger: &Ledger, rule: usize, key: CounterKey, now: Timestamp) -> Option<String> {
    let audit = ledger.audit(rule, key, now)?;
    let rule = ledger.rules().rule(rule)?;
    let tolerance = i128::from(rule.tolerance_ppm) * i128::from(rule.quota.limit.get());
    let spare = i128::from(audit.room_micro) + tolerance - i128::from(audit.lent_micro);
    (spare < 0).then(|| {
        let (limit, window) = (rule.quota.limit, rule.quota.window.longest());
        let algorithm = rule.quota.algorithm;
        format!(
            "{key:?} of {}, {limit} in {window} {algorithm:?}: {} millionths lent, {} left, {tolerance} tolerated",
            rule.name, audit.lent_micro, audit.room_micro
        )
    })
}
