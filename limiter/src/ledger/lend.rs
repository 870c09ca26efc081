//! How much to lend: the terms of one loan, given what is left and who else
//! wants it.
//!
//! With plenty left, a source gets tokens for what it is likely to spend until
//! it is next heard of. When there is less, it gets its share of what is left,
//! and of the rate at which more becomes free, in proportion to its demand. When
//! its share would not come to one hit before it is next heard of, it gets what
//! its waiting requests need if that is there, and is else told when it is of
//! use to ask again; what becomes free meanwhile goes to whoever asks next.
//!
//! All amounts are millionths of a hit.

use super::fair::{per_second, share};
use crate::time::Micros;

/// One hit.
pub(super) const HIT: u64 = 1_000_000;

/// How long a loan should last at the most: the time between two flushes, and then
/// some.
const HORIZON: Micros = Micros::from_millis(1_500);

/// How long a loan of tokens lasts while there is plenty left.
const TTL_AMPLE: Micros = Micros::from_secs(30);

/// The same where requests do not wait: a token is all there is to go on with.
const TTL_IMPATIENT: Micros = Micros::from_secs(60);

/// How long a loan lasts when there is little left: two flushes, so that one
/// may be lost.
pub(super) const TTL_SCARCE: Micros = Micros::from_millis(2_500);

/// What a source is lent beyond what it is likely to spend, while there is plenty.
const SPARE: u64 = 3 * HIT;

/// The part of what is left for each source that it is lent beyond that at the
/// most.
const SPARE_PART: u64 = 12;

/// The same where requests do not wait.
const SPARE_PART_IMPATIENT: u64 = 2;

/// For how long a source keeps tokens when there is little left.
const HELD: Micros = Micros::from_millis(1_100);

/// How long a source is kept from asking while others may give back.
const QUIET: Micros = Micros::from_secs(1);

/// The shortest time that one who is paid as it comes in is kept from asking
/// while there is a flood.
const QUIET_MIN: Micros = Micros::from_millis(100);

/// The longest a source is kept from asking when nobody has anything to give
/// back.
const QUIET_HOPELESS: Micros = Micros::from_secs(10);

/// What a source may do with a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    /// In hand from now on.
    pub(super) tokens: u64,
    /// Coming in each second.
    pub(super) rate: u64,
    /// How long both hold.
    pub(super) ttl: Micros,
    /// How long it is of no use to ask again.
    pub(super) quiet: Micros,
    /// How long every request is to be denied.
    pub(super) penalty: Micros,
    /// A second, to go on with while the region is away; 0: no need to be told.
    pub(super) share: u64,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Left of the limit by the books; negative when overspent.
    pub(super) room: i64,
    /// Becoming free each second.
    pub(super) freed: u64,
    /// Whether any does at all.
    pub(super) frees: bool,
    /// How long until a request of the wanted cost would be allowed if nobody
    /// else came and nothing were lent.
    pub(super) wait: Micros,
    /// How long until what is lent now would no longer count: the end of a
    /// fixed window.
    pub(super) ends: Option<Micros>,
    /// The limit, a second.
    pub(super) limit_rate: u64,
    /// How far over the limit lending may go.
    pub(super) tolerance: u64,
    /// Sources that there are, with a loan of this key or without.
    pub(super) sources: u64,
    /// Whether a hit in the hand of each source would be more than half the limit.
    pub(super) coarse: bool,
    /// What a token bucket holds when it is full.
    pub(super) bucket: Option<u64>,
    /// How often a source reports what it counted.
    pub(super) interval: Micros,
    /// Kept back for what the other sources may admit unasked; what they are lent
    /// covers some of it.
    pub(super) reserve: u64,
}

/// A claim among the others on a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// Lent to others and not accounted for.
    pub(super) lent: u64,
    /// Of that, up to one hit of each source.
    pub(super) covered: u64,
    /// Of what is lent, likely to be given back unspent.
    pub(super) idle: u64,
    /// Lent to others as rates, a second.
    pub(super) rates: u64,
    /// This source's part of what becomes free, a second.
    pub(super) rate: u64,
    /// This source's demand a second.
    pub(super) demand: u64,
    /// Whether its requests do not wait for an answer.
    pub(super) impatient: bool,
    /// How long it had been told not to ask.
    pub(super) turn: Micros,
    /// Everybody's, its own with them.
    pub(super) all_demand: u64,
    /// Whether more has been wanted lately than there was.
    pub(super) contested: bool,
    /// Sources with a loan, itself with them.
    pub(super) sources: u64,
}

/// What the source itself brings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own {
    pub(super) held: u64,
    pub(super) unreported: u64,
    pub(super) wanted: u64,
    pub(super) offered: u64,
}

/// The terms of a loan.
pub(super) fn terms(state: &State, standing: &Standing, own: &Own) -> Terms {
    let free = free(state, standing, own);
    // Never all that is left to the first who asks: others may be about to.
    let most = if standing.sources == 1 {
        free / 2
    } else {
        free
    };
    let fair = share(free, standing.demand, standing.all_demand)
        .max(free / standing.sources.max(1).saturating_mul(2))
        .min(most);
    let need = need(state, standing, own, free);
    let has_to_wait = need == 0 && (free < HIT || pays_ahead(state, standing));
    let mut terms = if fair >= need && !has_to_wait {
        Terms {
            tokens: need,
            ttl: if standing.impatient {
                TTL_IMPATIENT
            } else {
                TTL_AMPLE
            },
            ..Terms::default()
        }
    } else {
        scarce(state, standing, own, free)
    };
    if let Some(ends) = state.ends {
        terms.ttl = terms.ttl.min(ends);
    }
    terms
}

/// The terms for a source that only wants to know what is left: nothing is lent.
pub(super) fn told(penalty: Micros) -> Terms {
    Terms {
        ttl: TTL_AMPLE,
        penalty,
        ..Terms::default()
    }
}

/// The terms while every request is denied for so long: nothing is lent, nor is
/// it of use to ask.
pub(super) fn punished(state: &State, standing: &Standing, penalty: Micros) -> Terms {
    Terms {
        ttl: TTL_SCARCE,
        quiet: penalty,
        penalty,
        share: alone(state, standing).max(1),
        ..Terms::default()
    }
}

/// The terms when the region decides every request: what the waiting ones need,
/// if all of it is there, and nothing to spare.
pub(super) fn exact(state: &State, standing: &Standing, own: &Own) -> Terms {
    let free = free(
        &State {
            tolerance: 0,
            reserve: 0,
            ..*state
        },
        standing,
        own,
    );
    let tokens = own.wanted.min(free / HIT * HIT);
    let quiet = if tokens < own.wanted {
        state.wait.min(QUIET)
    } else {
        Micros::ZERO
    };
    Terms {
        tokens,
        ttl: TTL_SCARCE,
        quiet,
        ..Terms::default()
    }
}

/// What a source is likely to spend until it is next heard of: with a few hits
/// to spare where there is plenty, since requests do not come evenly, but
/// nothing for a source that its traffic has left.
fn need(state: &State, standing: &Standing, own: &Own, free: u64) -> u64 {
    let even = free / standing.sources.max(1);
    let goes_on = own.held >= HIT || own.offered > 0 || even >= HIT;
    let all_could = free >= state.sources.saturating_mul(HIT);
    let eager = standing.impatient && !standing.contested;
    let least = if eager && even >= 2 * HIT {
        2 * HIT
    } else if (even >= 2 * HIT && all_could) || (standing.impatient && goes_on) {
        HIT
    } else {
        0
    };
    let part = if standing.impatient {
        SPARE_PART_IMPATIENT
    } else {
        SPARE_PART
    };
    let spare = SPARE
        .min(even / part)
        .min(per_second(standing.demand, TTL_AMPLE));
    let spare = match (standing.contested, standing.impatient) {
        (false, _) => spare.max(least),
        (true, true) => least,
        (true, false) => 0,
    };
    let horizon = Micros::new(state.interval.get().saturating_mul(3) / 2).min(HORIZON);
    let mut likely = per_second(standing.demand, horizon).saturating_add(spare);
    if eager {
        // It may just have begun: what came is the least that comes again, and more
        // while there is plenty.
        let more = own.offered.saturating_mul(6).min(even / 2);
        likely = likely.max(own.offered.saturating_mul(2)).max(more);
    }
    // Part of a hit is lent as a whole one only where one in every hand is little.
    let part = if state.coarse { 0 } else { HIT / 2 };
    own.wanted
        .saturating_add(likely.saturating_add(part) / HIT * HIT)
}

/// What may be lent to this source, with what it holds already.
pub(super) fn free(state: &State, standing: &Standing, own: &Own) -> u64 {
    let over = if state.frees {
        standing.idle.saturating_add(own.held).min(state.tolerance)
    } else {
        0
    };
    let owed = standing
        .lent
        .saturating_add(own.unreported)
        .saturating_add(state.reserve.saturating_sub(standing.covered));
    let free = i128::from(state.room) + i128::from(over) - i128::from(owed);
    u64::try_from(free.max(0)).unwrap_or(u64::MAX)
}

/// The terms when there is not enough for everybody: what it holds, if it is
/// likely to spend it; its share of what nobody holds, or what its requests wait
/// for; and its share of what becomes free.
fn scarce(state: &State, standing: &Standing, own: &Own, free: u64) -> Terms {
    let ours = |amount: u64| share(amount, standing.demand, standing.all_demand);
    let likely = per_second(standing.demand, TTL_SCARCE);
    let ahead = standing.impatient || pays_ahead(state, standing);
    let likely = if ahead { likely.max(HIT) } else { likely };
    let held = if likely >= HIT {
        own.held
            .min(free)
            .min(per_second(standing.demand, HELD).max(HIT))
    } else {
        0
    };
    let pool = free - held;
    let rate = standing
        .rate
        .min(state.freed.saturating_sub(standing.rates));
    let lasting = per_second(rate, TTL_SCARCE) >= HIT && pays_by_rate(state, standing);
    let part = if lasting || held > 0 || ours(pool) >= HIT {
        ours(pool)
    } else {
        0
    };
    let part = if standing.sources == 1 {
        part.min(pool / 2)
    } else {
        part
    };
    let next = if ahead && own.offered > 0 && held < HIT {
        HIT
    } else {
        0
    };
    let wanted = own.wanted.max(next).min(pool / HIT * HIT);
    let tokens = held.saturating_add(part.max(wanted));
    let tokens = if lasting { tokens } else { tokens / HIT * HIT };
    let left = free.saturating_sub(tokens) >= HIT;
    let (ttl, quiet) = if lasting {
        (TTL_SCARCE, quiet_paid(state, standing, left))
    } else {
        let quiet = quiet(state, standing, own, left);
        (until_used(standing).max(quiet), quiet)
    };
    Terms {
        tokens,
        rate: if lasting { rate } else { 0 },
        ttl,
        quiet,
        penalty: Micros::ZERO,
        share: alone(state, standing).max(1),
    }
}

/// What a source may go on with alone, a second: as much of the limit as it has
/// of what becomes free.
fn alone(state: &State, standing: &Standing) -> u64 {
    if state.freed > 0 {
        share(
            state.limit_rate,
            standing.rate.min(state.freed),
            state.freed,
        )
    } else {
        share(state.limit_rate, standing.demand, standing.all_demand)
    }
}

/// How long tokens are left with a source: until it has likely spent them.
fn until_used(standing: &Standing) -> Micros {
    if standing.impatient {
        return TTL_IMPATIENT;
    }
    let gap = share(HIT, 1_000_000, standing.demand);
    Micros::new(gap.saturating_mul(4))
        .max(TTL_SCARCE)
        .min(TTL_AMPLE)
}

/// Whether a source gets its next token before it asks: while it wants twice what
/// it can have, and the tokens that then lie idle until each source has its next
/// request are not far from the tolerance.
fn pays_ahead(state: &State, standing: &Standing) -> bool {
    let all = standing.sources.saturating_mul(HIT);
    let idle = share(all, standing.rate, standing.demand);
    let flooded = standing.demand >= standing.rate.saturating_mul(2);
    let most = state
        .bucket
        .map_or(state.tolerance.saturating_mul(2), |bucket| bucket / 4);
    // One with each report has to be all that it can have.
    let enough = per_second(standing.rate, state.interval) <= HIT;
    standing.rate > 0 && flooded && enough && idle <= most
}

/// Whether sources are paid as it comes in. Each then has half a hit in hand that it
/// cannot spend yet: a window admits too few by as many, and a bucket that is small
/// beside them overflows.
fn pays_by_rate(state: &State, standing: &Standing) -> bool {
    let idle = standing.sources.saturating_mul(HIT / 2);
    idle <= state.bucket.map_or(state.tolerance, |bucket| bucket / 2)
}

/// Whether twice as much is wanted as becomes free.
const fn is_flooded(state: &State, standing: &Standing) -> bool {
    standing.all_demand >= state.freed.saturating_mul(2)
}

/// How long it is of no use to ask for who is paid as it comes in: until the next
/// flush, or the sooner the more of all requests are its own, for the others may
/// leave something.
fn quiet_paid(state: &State, standing: &Standing, left: bool) -> Micros {
    let others = standing.all_demand.saturating_sub(standing.demand);
    let soon = Micros::new(share(TTL_SCARCE.get(), others, standing.all_demand));
    match (left, is_flooded(state, standing)) {
        (true, false) => Micros::ZERO,
        _ if others == 0 => TTL_SCARCE,
        _ => soon.max(QUIET_MIN),
    }
}

/// How long it is of no use to ask for everybody else: until it is the source's
/// turn. All of them together ask twice for each hit that becomes free; a flush
/// does not put a turn off. Until the books say so, if nothing is out on loan.
fn quiet(state: &State, standing: &Standing, own: &Own, left: bool) -> Micros {
    if pays_ahead(state, standing) {
        return TTL_SCARCE;
    }
    if left {
        return Micros::ZERO;
    }
    if state.freed == 0 {
        return match state.wait {
            wait if standing.lent == 0 && wait > Micros::ZERO => wait.min(QUIET_HOPELESS),
            _ => QUIET,
        };
    }
    let turns = standing.sources.saturating_mul(HIT);
    let round = share(1_000_000, turns, state.freed.saturating_mul(2));
    let gap = share(HIT, 1_000_000, standing.demand);
    let turn = Micros::new(round.saturating_sub(gap)).min(TTL_AMPLE);
    if own.wanted == 0 {
        turn.min(standing.turn)
    } else {
        turn
    }
}
