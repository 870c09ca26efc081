//! By the region's books, what is lent never exceeds what is left of the limit
//! and its tolerance.

use std::collections::HashMap;

use limiter::{
    key::{CounterKey, RuleId},
    ledger::Ledger,
    rule::Scope,
    time::Timestamp,
    wire::LeaseGroup,
};

use crate::region::Synced;

/// Looks at every loan as it is made. Later the sum may shift: a source that was
/// cut off reports what it admitted meanwhile.
#[derive(Default)]
pub(crate) struct Limits {
    /// Whether global rules are only lent on here: what there is of them is told by
    /// the aggregator above, and not by these books.
    lends_on: bool,
    /// The latest message of each source. One that comes again, or late, is told
    /// again what it was told, and makes no loan.
    latest: HashMap<u64, u64>,
}

impl Limits {
    /// Of a region's books, or of those above.
    pub(crate) fn new(lends_on: bool) -> Self {
        Self {
            lends_on,
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
            let is_global = ledger.rules().rule(rule)?.scope == Scope::Global;
            if is_global && self.lends_on {
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
        format!(
            "{key:?} of {}: {} millionths lent, {} left, {tolerance} tolerated",
            rule.name, audit.lent_micro, audit.room_micro
        )
    })
}
