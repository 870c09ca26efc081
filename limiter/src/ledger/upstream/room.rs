//! What may be lent of a key of a global limit: not what the books here leave of it, but
//! what the aggregator above has lent.

use super::{Upstream, stake::Stake};
use crate::{
    borrow::HIT,
    cold,
    count::Count,
    key::CounterKey,
    ledger::{lend::State, state},
    quota::{Algorithm, Quota},
    rule::Rule,
    time::{Micros, Timestamp},
};

/// How much later than usual an answer may come.
const JITTER: Micros = Micros::from_millis(2);

/// What a region may go by.
pub(in crate::ledger) struct Room<'a> {
    pub(in crate::ledger) rule: &'a Rule,
    pub(in crate::ledger) key: CounterKey,
    /// What was counted here.
    pub(in crate::ledger) count: &'a Count,
    /// Of that, hits that are not in the books above.
    pub(in crate::ledger) unacked: u64,
    /// Hits that are wanted.
    pub(in crate::ledger) wanted: u64,
}

impl Upstream {
    /// The state of a key, for lending. While the aggregator above cannot be asked, this
    /// region's share of the limit.
    pub(in crate::ledger) fn state(
        &self,
        stake: Option<&mut Stake>,
        room: &Room<'_>,
        now: Timestamp,
    ) -> State {
        let mut state =
            state::by_the_books(room.rule, &room.rule.quota, room.count, room.wanted, now);
        let regions = u64::from(self.regions_at_least());
        state.tolerance /= regions;
        state.bucket = state.bucket.map(|bucket| bucket / regions);
        let fair = (state.limit_rate / regions).max(1);
        state.interval = Micros::new(state.interval.get() / 3);
        match stake {
            Some(stake) if !self.is_away(now) => self.lent(stake, room, &mut state, now),
            Some(stake) if room.rule.quota.algorithm == Algorithm::TokenBucket => {
                let share = named(stake.lease.share, fair);
                stake.lease.share = share;
                stake.lease.accrue_share(now);
                state.room = stake.lease.tokens;
                (state.freed, state.limit_rate) = (share, share);
            }
            stake => {
                let share = stake.map_or(0, |stake| stake.lease.share);
                let share = named(share, fair);
                let quota = part_of(&room.rule.quota, share, state.limit_rate);
                let alone = state::by_the_books(room.rule, &quota, room.count, room.wanted, now);
                state.room = alone.room;
                (state.freed, state.limit_rate) = (alone.freed, share);
                state.wait = alone.wait;
            }
        }
        state
    }

    /// By the lease, and by what may be admitted of a key that nobody has been asked
    /// about.
    fn lent(&self, stake: &mut Stake, room: &Room<'_>, state: &mut State, now: Timestamp) {
        stake.lease.accrue(now);
        let live = stake.lease.is_live(now);
        let lease = &stake.lease;
        let tokens = if live {
            lease.tokens
        } else {
            lease.tokens.min(0)
        };
        let credit = self.credit(room, now);
        state.room = if credit > 0 {
            tokens.max(0).saturating_add(credit)
        } else {
            tokens
        };
        state.freed = if live { lease.rate } else { 0 };
        let quota = &room.rule.quota;
        state.frees = quota.algorithm != Algorithm::FixedWindow;
        if quota.is_short(self.link.rtt) {
            let part = quota.capacity().saturating_mul(HIT.unsigned_abs());
            state.bucket = Some(part / u64::from(self.regions_at_least()));
            state.frees = true;
            state.ends = None;
        }
        if lease.share > 0 {
            state.limit_rate = lease.share;
        } else {
            state.limit_rate /= u64::from(self.regions_at_least());
        }
        let answer = stake.claimed.after(self.link.rtt).after(JITTER);
        state.wait = if stake.open && answer > now {
            answer.since(now)
        } else {
            lease.quiet.since(now).max(self.link.rtt)
        };
    }

    /// Tokens of a key that may be admitted unasked: as long as it is known not to be
    /// crowded anywhere, and less what the books above do not have yet.
    fn credit(&self, room: &Room<'_>, now: Timestamp) -> i64 {
        if !self.crowded.is_clear(room.key, now) {
            return 0;
        }
        let credit = cold::of_region(room.rule.quota.capacity(), self.regions);
        let left = credit.saturating_sub(room.unacked);
        i64::try_from(left).unwrap_or(i64::MAX).saturating_mul(HIT)
    }
}

const fn named(share: u64, fair: u64) -> u64 {
    if share > 0 { share } else { fair }
}

/// The quota that is a share of this one: `share` of `whole`, at least a hit.
fn part_of(quota: &Quota, share: u64, whole: u64) -> Quota {
    let limit = u128::from(quota.limit.get()) * u128::from(share);
    let limit = limit.checked_div(u128::from(whole)).unwrap_or(0);
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    match core::num::NonZeroU64::new(limit.clamp(1, quota.limit.get())) {
        Some(limit) => Quota::new(limit, quota.window, quota.algorithm),
        None => *quota,
    }
}
