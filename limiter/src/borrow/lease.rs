//! A lease, as who holds it sees it. Amounts of tokens are millionths of a hit,
//! instants the host's clock.

use crate::{
    time::{Micros, Timestamp},
    wire::LeaseGroup,
};

/// One hit, in tokens.
pub(crate) const HIT: i64 = 1_000_000;

/// What the region has lent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lease {
    /// In hand at `at`; negative: admitted ahead of the region's word.
    pub(crate) tokens: i64,
    pub(crate) at: Timestamp,
    pub(crate) rate: u64,
    pub(crate) expires: Timestamp,
    /// Until when it is of no use to ask.
    pub(crate) quiet: Timestamp,
    /// A second, while the region is away; 0: none named.
    pub(crate) share: u64,
    /// Hits left over all sources, as last told, less those spent here since.
    pub(crate) remaining: u64,
    /// When the whole limit is there again, as last told.
    pub(crate) resets: Timestamp,
    /// Before then the books have no room for a request, as last told.
    pub(crate) retry: Timestamp,
}

impl Lease {
    /// What a reply says of the key at `place` of a group: times count from `sent`, when
    /// it was asked for. That is before it was granted, so that nothing is spent after
    /// the region thinks it over; and what comes in has come in since then, so that none
    /// of it is lost on the way.
    ///
    /// `spent` tokens since then come off again. A debt is paid by a grant, not by being
    /// told that there is none.
    pub(crate) fn granted(
        &self,
        group: &LeaseGroup,
        place: usize,
        spent: i64,
        sent: Timestamp,
    ) -> Self {
        let value = |column: &[u64]| column.get(place).copied().unwrap_or(0);
        let until = |column: &[u64]| sent.after(Micros::from_millis(value(column)));
        let tokens = i64::try_from(value(&group.tokens_micro)).unwrap_or(i64::MAX);
        let debt = self.tokens.saturating_add(spent).min(0);
        let hits = u64::try_from(spent / HIT).unwrap_or(0);
        Self {
            tokens: if tokens == 0 { debt } else { tokens },
            at: sent,
            rate: value(&group.rate_micro),
            expires: until(&group.ttl_ms),
            quiet: until(&group.quiet_ms),
            share: value(&group.share_micro),
            remaining: value(&group.remaining).saturating_sub(hits),
            resets: until(&group.reset_ms),
            retry: until(&group.retry_ms),
        }
    }

    /// Whether it may be spent at `now`. A clock that has gone back by more than
    /// a second ends it: nobody knows how long ago it was made.
    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires && self.at <= now.after(Micros::from_secs(1))
    }

    /// Takes in what has come in by `now`, or by its expiry.
    pub(crate) fn accrue(&mut self, now: Timestamp) {
        let until = now.min(self.expires);
        if until <= self.at {
            return;
        }
        if self.rate > 0 {
            self.tokens = self
                .tokens
                .saturating_add(gain(self.rate, until.since(self.at)));
        }
        self.at = until;
    }

    /// Takes in the share that goes on while the region is away: never more
    /// than a second of it, or two hits, is saved up.
    pub(crate) fn accrue_share(&mut self, now: Timestamp) {
        let most = i64::try_from(self.share).unwrap_or(i64::MAX).max(2 * HIT);
        let gained = gain(self.share, now.since(self.at));
        self.tokens = self.tokens.saturating_add(gained).min(most);
        self.at = self.at.max(now);
    }

    /// Whether a cost is covered.
    pub(crate) fn covers(&self, cost: u64) -> bool {
        self.tokens >= tokens(cost)
    }

    /// How long until a cost is covered at `rate`; none if it never is.
    pub(crate) fn wait(&self, cost: u64, rate: u64) -> Option<Micros> {
        let missing = u64::try_from(tokens(cost).saturating_sub(self.tokens)).unwrap_or(0);
        let wait = u128::from(missing)
            .saturating_mul(1_000_000)
            .checked_add(u128::from(rate).saturating_sub(1))?
            .checked_div(u128::from(rate))?;
        Some(Micros::new(u64::try_from(wait).unwrap_or(u64::MAX)))
    }
}

/// A cost in tokens.
pub(crate) fn tokens(cost: u64) -> i64 {
    i64::try_from(cost).unwrap_or(i64::MAX).saturating_mul(HIT)
}

/// `rate` a second, for `span`.
fn gain(rate: u64, span: Micros) -> i64 {
    let gained = u128::from(rate) * u128::from(span.get()) / 1_000_000;
    i64::try_from(gained).unwrap_or(i64::MAX)
}
