//! What a region is lent that is itself a source: much at once while there is plenty,
//! since its answers are far away and it lends on; by rate where a window is over before
//! an answer has made its way.

use super::{
    fair::{per_second, share},
    lend::{self, HIT, Own, Standing, State, TTL_SCARCE, Terms},
};
use crate::{quota::Quota, time::Micros};

/// How long a loan to a region should last at the least while there is plenty: some
/// flushes and an answer.
const HORIZON: Micros = Micros::from_millis(2_000);

/// How often a region speaks.
const FLUSH: Micros = Micros::from_millis(500);

/// How long a loan of tokens lasts while there is plenty left.
const TTL_AMPLE: Micros = Micros::from_secs(30);

/// Its part of the limit as it comes in, whatever has been spent: over two windows no
/// more than their limits. What it saves up is its part of one window at the most.
pub(super) fn by_rate(state: &State, standing: &Standing, own: &Own, quota: &Quota) -> Terms {
    let left = state.limit_rate.saturating_sub(standing.rates);
    let rate = standing.rate.min(left);
    let capacity = quota.capacity().saturating_mul(HIT);
    let part = share(capacity, rate, state.limit_rate);
    Terms {
        tokens: own.held.min(part),
        rate,
        ttl: TTL_SCARCE,
        share: rate.max(1),
        ..Terms::default()
    }
}

/// The terms of any other loan to a region.
pub(super) fn terms(state: &State, standing: &Standing, own: &Own, round_trip: Micros) -> Terms {
    let free = lend::free(state, standing, own);
    let fair = share(free, standing.demand, standing.all_demand)
        .max(free / standing.sources.max(1).saturating_mul(2))
        .max(own.wanted.min(free / 2))
        .min(free / 4 * 3);
    let until_heard = per_second(standing.demand, state.interval.plus(FLUSH).plus(round_trip));
    let ample = per_second(standing.demand, HORIZON);
    let likely = if standing.contested {
        until_heard.max(ample.min(fair / 4 * 3))
    } else {
        ample
    };
    let likely = likely.saturating_add(own.wanted);
    let named = share(state.limit_rate, standing.demand, standing.all_demand);
    if fair < likely.saturating_add(HIT) {
        return lend::terms(state, standing, own);
    }
    let ttl = state.ends.map_or(TTL_AMPLE, |ends| TTL_AMPLE.min(ends));
    Terms {
        tokens: if standing.contested {
            likely
        } else {
            likely.max(fair / 2)
        } / HIT
            * HIT,
        ttl,
        share: named
            .max(state.limit_rate / standing.sources.max(1).saturating_mul(2))
            .max(1),
        ..Terms::default()
    }
}
