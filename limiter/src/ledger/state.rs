//! What there is to lend of a key, by the books here.

use super::{
    fair::share,
    lend::{self, HIT, State},
};
use crate::{
    count::Count,
    quota::{Algorithm, Quota},
    rule::Rule,
    time::{Micros, Timestamp},
};

/// How often a source reports what it counted, unless its rule asks for more.
const FLUSH: Micros = Micros::from_secs(1);

/// What a key's books come to, under this quota.
pub(super) fn by_the_books(
    rule: &Rule,
    quota: &Quota,
    count: &Count,
    wanted: u64,
    now: Timestamp,
) -> State {
    let cost = wanted.div_ceil(HIT).max(1);
    let limit = quota.limit.get();
    let left = quota.window.reset_after(now);
    let room = count.room_micro(quota, now);
    let freed = freed(rule, quota, count, room, now);
    State {
        room,
        freed,
        frees: freed > 0,
        wait: count.retry_after(quota, cost, now).unwrap_or(left),
        ends: (quota.algorithm == Algorithm::FixedWindow).then_some(left),
        limit_rate: share(limit, 1_000_000_000_000, quota.window.longest().get()),
        tolerance: limit.saturating_mul(u64::from(rule.tolerance_ppm)),
        sources: 0,
        coarse: false,
        bucket: (quota.algorithm == Algorithm::TokenBucket)
            .then_some(quota.capacity().saturating_mul(HIT)),
        interval: rule.report_interval().unwrap_or(FLUSH).min(FLUSH),
        reserve: 0,
    }
}

/// What becomes free each second and may be lent: where responses have cost more than
/// there was, they are to be worked off first.
fn freed(rule: &Rule, quota: &Quota, count: &Count, room: i64, now: Timestamp) -> u64 {
    let freed = count.freed_per_second(quota, now);
    match rule.cost.response_header() {
        None => freed,
        Some(_) => {
            let overspent = room.min(0).unsigned_abs();
            freed.saturating_sub(share(overspent, 1_000_000, lend::TTL_SCARCE.get()))
        }
    }
}
