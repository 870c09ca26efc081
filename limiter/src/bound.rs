//! What a rule costs and how far it can miss, from its settings alone.
//!
//! The most that a whole fleet can admit over a limit, and what it costs to keep
//! it there. The simulator's checkers hold every run against the same formulas.

use crate::{
    cold,
    quota::Algorithm,
    rule::{Consistency, Rule, Scope},
    time::Micros,
};

/// A fleet: how many sources there are, and how far away their region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Sources of each region.
    pub sources: u32,
    /// From a question to its answer.
    pub round_trip: Micros,
    /// Regions that share limits of scope `global`: at least one.
    pub regions: u32,
    /// From a region's question to the answer of the aggregator above.
    pub above: Micros,
}

impl Fleet {
    /// One source, at its region.
    pub const ONE: Self = Self {
        sources: 1,
        round_trip: Micros::ZERO,
        regions: 1,
        above: Micros::ZERO,
    };
}

/// The most that a fleet can admit over a limit, in hits, while the region can be
/// reached. What is admitted while it cannot is a leak, and counted as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Over {
    /// Because tokens that lie idle are lent once more.
    pub overbooked: u64,
    /// Because sources admit ahead of the region's word.
    pub debt: u64,
    /// Because sources do not ask at all.
    pub unasked: u64,
    /// Because regions save up their parts of a limit whose window is over before the
    /// aggregator above answers: it is kept on the average.
    pub carried: u64,
    /// Because responses cost more than their requests had spent: if all that fit
    /// are under way at once, and each costs the most. One exact limiter would have
    /// admitted as much.
    pub responses: u64,
}

/// What it costs to keep a limit, in parts of a million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Questions per request, the flush each second not counted: about this many
    /// at the most.
    pub asks_ppm: u32,
    /// Requests that wait for an answer.
    pub held_ppm: u32,
}

/// All of a request.
const WHOLE: u64 = 1_000_000;

/// The longest that a source waits for its turn to ask.
const TURN_MAX: u64 = 30_000_000;

/// The load from which a key is flooded, in percent of its limit.
const FLOOD: u64 = 200;

/// How long a source that is paid as it comes in does not ask.
const PAID: u64 = 2_500_000;

impl Over {
    /// Of this rule, over all of this fleet and in any one window.
    ///
    /// - scope `pop`: nothing over each source's own limit;
    /// - consistency `exact`: nothing;
    /// - consistency `edge`: every source may admit its local cap;
    /// - consistency `leased`: the tolerance, for what is lent twice (never in a
    ///   fixed window, in which nothing becomes free), and each source's whole
    ///   hits of its part of the tolerance, for what is admitted ahead. What a
    ///   source admits unasked of a key that it has not met is kept back by the
    ///   region, and adds nothing;
    /// - scope `global` over several regions: what is lent twice is lent twice once more
    ///   by the aggregator above; and of a window that is shorter than 16 of its round
    ///   trips, the limit of one window, which regions may have saved up.
    ///
    /// A region that is cut off from the aggregator above goes on with its share of each
    /// window, on top of what the others admit. That counts as leaked, and is not in this.
    ///
    /// Where the response says what a request costs, what all requests that can be
    /// under way cost beyond what they spend as they come.
    pub fn of(rule: &Rule, fleet: Fleet) -> Self {
        let kept = Self::as_they_come(rule, fleet);
        let admitted = rule.quota.capacity().saturating_add(kept.hits());
        let (upfront, most) = (rule.cost.most_upfront(), rule.cost.most());
        let responses = mul_div(admitted, most.saturating_sub(upfront), upfront);
        Self { responses, ..kept }
    }

    /// The same of what requests spend as they come.
    pub fn as_they_come(rule: &Rule, fleet: Fleet) -> Self {
        let shared = rule.scope == Scope::Global && fleet.regions > 1;
        let regions = if shared { u64::from(fleet.regions) } else { 1 };
        let sources = u64::from(fleet.sources.max(1)).saturating_mul(regions);
        let capacity = rule.quota.capacity();
        let short = shared && rule.quota.is_short(fleet.above);
        match (rule.scope, rule.consistency) {
            (Scope::Pop, _) | (_, Consistency::Exact) => Self::default(),
            (_, Consistency::Edge) => Self {
                unasked: rule
                    .local_cap
                    .saturating_mul(sources)
                    .saturating_sub(capacity),
                ..Self::default()
            },
            (_, Consistency::Leased) => Self {
                overbooked: match rule.quota.algorithm {
                    Algorithm::FixedWindow => 0,
                    Algorithm::SlidingWindow | Algorithm::TokenBucket if shared => {
                        tolerance(rule).saturating_mul(2)
                    }
                    Algorithm::SlidingWindow | Algorithm::TokenBucket => tolerance(rule),
                },
                debt: (tolerance(rule) / sources).saturating_mul(sources),
                carried: if short { capacity } else { 0 },
                ..Self::default()
            },
        }
    }

    /// All of it together.
    pub const fn hits(&self) -> u64 {
        self.overbooked
            .saturating_add(self.debt)
            .saturating_add(self.unasked)
            .saturating_add(self.carried)
            .saturating_add(self.responses)
    }
}

/// The smallest limit under which sources of this fleet need not turn away the first
/// requests of each key: they cannot wait for the region, whose answer takes as long as
/// the rule's hold or longer, and what all of them may admit unasked is a part of the
/// limit. None: the rule is kept in a way, or the region is so near, that it does not
/// matter.
pub fn least_without_waiting(rule: &Rule, fleet: Fleet) -> Option<u64> {
    let lends = rule.consistency == Consistency::Leased && rule.scope != Scope::Pop;
    let waits = rule.hold > Micros::ZERO && rule.hold > fleet.round_trip;
    if !lends || waits {
        return None;
    }
    let regions = match rule.scope {
        Scope::Global => fleet.regions.max(1),
        Scope::Pop | Scope::Region => 1,
    };
    let sources = fleet.sources.saturating_mul(regions);
    Some(cold::least_for_credit(sources))
}

impl Cost {
    /// Of a counter of this rule that the fleet asks for `load_percent` of its
    /// limit, spread evenly.
    pub fn of(rule: &Rule, fleet: Fleet, load_percent: u32) -> Self {
        let load = u64::from(load_percent);
        let (asks, held) = match (rule.scope, rule.consistency) {
            (Scope::Pop, _) | (_, Consistency::Edge) => (0, 0),
            (_, Consistency::Exact) => (WHOLE, WHOLE),
            (_, Consistency::Leased) if load < FLOOD => within(rule, fleet, load),
            (_, Consistency::Leased) => {
                let asks = flooded(rule, fleet, load);
                (asks, asks)
            }
        };
        let waits = rule.consistency == Consistency::Exact || fleet.round_trip < rule.hold;
        let ppm = |part: u64| u32::try_from(part.min(WHOLE)).unwrap_or(u32::MAX);
        Self {
            asks_ppm: ppm(asks),
            held_ppm: if waits { ppm(held) } else { 0 },
        }
    }
}

/// Questions, and requests that wait, per million requests of a key that is asked
/// for about what its limit allows.
///
/// Both fall as each source has more to do within a second, for a flush brings it
/// that much. The factors bound what simulated fleets of 5 to 100 sources did at
/// limits of 20 to 50 000 a minute.
fn within(rule: &Rule, fleet: Fleet, load_percent: u64) -> (u64, u64) {
    let window = rule.quota.window.longest().get().max(1);
    let sources = u64::from(fleet.sources.max(1));
    // A second, in microseconds, and the load as a whole.
    let second = load_percent.saturating_mul(10_000);
    let hits = rule.quota.limit.get().saturating_mul(second);
    let part = |factor: u64| {
        mul_div(
            WHOLE,
            window.saturating_mul(sources),
            hits.saturating_mul(factor),
        )
    };
    (part(2), part(5))
}

/// Whole hits of the tolerance.
fn tolerance(rule: &Rule) -> u64 {
    let part = u128::from(rule.quota.limit.get()) * u128::from(rule.tolerance_ppm);
    u64::try_from(part / u128::from(WHOLE)).unwrap_or(u64::MAX)
}

/// Questions per million requests of a key that is flooded.
fn flooded(rule: &Rule, fleet: Fleet, load_percent: u64) -> u64 {
    let sources = u64::from(fleet.sources.max(1));
    let window = rule.quota.window.longest().get().max(1);
    let limit = rule.quota.limit.get();
    // Hits that each source can have while it does not ask.
    let paid = mul_div(limit, PAID, window.saturating_mul(sources));
    let overload = load_percent / 100;
    if paid >= 1 && sources / 2 <= idle_most(rule) {
        let offered = mul_div(limit, PAID.saturating_mul(overload), window);
        return mul_div(WHOLE, sources, offered);
    }
    let ahead = sources / overload.max(1) <= idle_most(rule).saturating_mul(2);
    if ahead {
        return WHOLE.saturating_mul(2) / overload.max(1);
    }
    // In turn, and each of them now and then.
    let offered = mul_div(limit, TURN_MAX.saturating_mul(overload), window);
    let now_and_then = mul_div(WHOLE.saturating_mul(2), sources, offered.max(1));
    (WHOLE.saturating_mul(3) / overload.max(1)).saturating_add(now_and_then)
}

/// Whole hits that may lie at sources in parts: a window admits too few by as many,
/// a bucket that is large beside them loses nothing.
fn idle_most(rule: &Rule) -> u64 {
    match rule.quota.algorithm {
        Algorithm::TokenBucket => rule.quota.capacity() / 2,
        Algorithm::FixedWindow | Algorithm::SlidingWindow => tolerance(rule),
    }
}

/// `amount × part / whole`, rounded down; nothing of nothing.
fn mul_div(amount: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(amount) * u128::from(part);
    u64::try_from(product.checked_div(u128::from(whole)).unwrap_or(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::*;
    use crate::{quota::Quota, window::Window};

    fn rule(limit: u64, algorithm: Algorithm) -> Option<Rule> {
        let window = Window::new(Micros::from_secs(60))?;
        Some(Rule::new(
            "r",
            Quota::new(NonZeroU64::new(limit)?, window, algorithm),
        ))
    }

    fn fleet(sources: u32) -> Fleet {
        Fleet {
            sources,
            round_trip: Micros::from_millis(2),
            regions: 1,
            above: Micros::ZERO,
        }
    }

    fn over(limit: u64, algorithm: Algorithm, sources: u32) -> Option<u64> {
        rule(limit, algorithm).map(|rule| Over::of(&rule, fleet(sources)).hits())
    }

    #[test]
    fn a_limit_is_missed_by_no_more_than_twice_its_tolerance() {
        assert_eq!(over(1_000, Algorithm::SlidingWindow, 20), Some(40));
        assert_eq!(over(1_000, Algorithm::SlidingWindow, 15), Some(35));
        assert_eq!(over(1_000, Algorithm::SlidingWindow, 300), Some(20));
    }

    #[test]
    fn over_regions_what_lies_idle_is_lent_twice_and_a_short_window_may_be_saved_up() {
        let over = |window_ms: u64| {
            let window = Window::new(Micros::from_millis(window_ms))?;
            let mut rule = rule(1_000, Algorithm::SlidingWindow)?;
            rule.quota.window = window;
            rule.scope = Scope::Global;
            let fleet = Fleet {
                regions: 3,
                above: Micros::from_millis(150),
                ..fleet(20)
            };
            let over = Over::of(&rule, fleet);
            Some((over.overbooked, over.debt, over.carried))
        };
        assert_eq!(over(60_000), Some((40, 0, 0)));
        assert_eq!(over(2_400), Some((40, 0, 0)));
        assert_eq!(over(2_399), Some((40, 0, 1_000)));
    }

    #[test]
    fn a_fixed_window_too_small_for_debts_is_kept_to_the_hit() {
        assert_eq!(over(100, Algorithm::FixedWindow, 20), Some(0));
        assert_eq!(over(1_000, Algorithm::FixedWindow, 20), Some(20));
    }

    #[test]
    fn what_responses_cost_is_bounded_by_all_that_can_be_under_way() {
        let rule = rule(100, Algorithm::FixedWindow).map(|mut rule| {
            rule.cost = crate::rule::Cost::ResponseHeader {
                name: "x-cost".into(),
                max: 10,
                upfront: 2,
                default: 2,
            };
            rule
        });
        let over = rule.map(|rule| Over::of(&rule, fleet(20)));
        assert_eq!(
            over.map(|over| (over.responses, over.hits())),
            Some((400, 400))
        );
    }

    #[test]
    fn who_never_asks_may_each_admit_the_local_cap() {
        let rule = rule(100, Algorithm::SlidingWindow).map(|mut rule| {
            rule.consistency = Consistency::Edge;
            rule.local_cap = 10;
            rule
        });
        let hits = rule.map(|rule| Over::of(&rule, fleet(300)).hits());
        assert_eq!(hits, Some(2_900));
    }

    #[test]
    fn a_flood_that_is_paid_by_rate_asks_next_to_nothing_and_one_in_turn_asks() {
        let asks = |limit, sources, load| {
            rule(limit, Algorithm::SlidingWindow)
                .map(|rule| Cost::of(&rule, fleet(sources), load).asks_ppm)
        };
        assert!(asks(1_000, 20, 1_000).is_some_and(|asks| asks < 60_000));
        assert!(asks(100, 300, 6_000).is_some_and(|asks| (190_000..300_000).contains(&asks)));
    }

    #[test]
    fn at_the_limit_a_source_asks_and_waits_less_the_more_it_has_to_do() {
        let cost = |limit| {
            let rule = rule(limit, Algorithm::SlidingWindow)?;
            let cost = Cost::of(&rule, fleet(20), 100);
            Some((cost.asks_ppm, cost.held_ppm))
        };
        assert_eq!(cost(20), Some((1_000_000, 1_000_000)));
        assert_eq!(cost(1_000), Some((600_000, 240_000)));
        assert_eq!(cost(10_000), Some((60_000, 24_000)));
    }

    #[test]
    fn a_limit_matters_to_those_who_cannot_wait() -> Result<(), &'static str> {
        let mut rule = rule(100, Algorithm::SlidingWindow).ok_or("a rule")?;
        let far = Fleet {
            round_trip: Micros::from_millis(20),
            regions: 3,
            ..fleet(20)
        };
        assert_eq!(least_without_waiting(&rule, fleet(20)), None);
        rule.hold = Micros::from_millis(20);
        assert_eq!(least_without_waiting(&rule, far), Some(80));
        rule.scope = Scope::Global;
        assert_eq!(least_without_waiting(&rule, far), Some(240));
        rule.hold = Micros::from_millis(21);
        assert_eq!(least_without_waiting(&rule, far), None);
        rule.hold = Micros::ZERO;
        assert_eq!(least_without_waiting(&rule, fleet(20)), Some(80));
        rule.scope = Scope::Pop;
        assert_eq!(least_without_waiting(&rule, far), None);
        Ok(())
    }

    #[test]
    fn nobody_waits_for_a_region_that_is_too_far() {
        let far = Fleet {
            round_trip: Micros::from_millis(20),
            ..fleet(20)
        };
        let held =
            rule(100, Algorithm::SlidingWindow).map(|rule| Cost::of(&rule, far, 100).held_ppm);
        assert_eq!(held, Some(0));
    }
}
