//! One rule, read from its mapping.

use std::num::NonZeroU64;

use limiter::{
    quota::{Algorithm, Quota},
    rule::{Fallback, HITS_MAX, HOLD_MAX, OnFailure, Rule, RuleError, WINDOW_MAX, text},
    time::Micros,
    window::Window,
};

use super::{
    at::At, conditions, cost, fields::Fields, key, numbers, response, tiers, tiers::Tier, words,
};

pub(super) const FIELDS: &[&str] = &[
    "name",
    "match",
    "key",
    "limit",
    "window",
    "algorithm",
    "burst",
    "cost",
    "count_denied",
    "scope",
    "consistency",
    "local_cap",
    "tolerance",
    "hold",
    "on_failure",
    "action",
    "penalty",
    "commit",
    "response",
    "refund",
    "ratelimit_headers",
    "per_tier",
];

/// What may be otherwise for a tier. What it does not say is as for everybody else.
pub(super) const TIER_FIELDS: &[&str] = &[
    "limit",
    "window",
    "burst",
    "cost",
    "count_denied",
    "local_cap",
    "tolerance",
    "hold",
    "on_failure",
    "action",
    "penalty",
    "response",
    "refund",
    "ratelimit_headers",
];

/// The word for no limit at all.
const UNLIMITED: &str = "unlimited";

/// Reads a rule: that for everybody, or for everybody else and for each tier that it
/// sets apart. Anything that is wrong has been noted.
pub(super) fn read(at: &At<'_>, tiers: Option<&[Tier]>) -> Option<Vec<Rule>> {
    let fields = at.fields(FIELDS)?;
    let name = fields.need("name").and_then(|at| name(&at));
    let mut plain = Rule {
        conditions: fields.or("match", Vec::new(), conditions::read),
        key: fields.or("key", Vec::new(), key::read),
        ..Rule::new(name.unwrap_or("?"), stand_in()?)
    };
    let listed = plain.listed_part().cloned();
    if let Some(at) = fields.get("match") {
        plain.conditions = conditions::for_key(&at, &plain.conditions, listed.as_ref())?;
    }
    let rule = limited(&fields, plain.clone());
    let Some(per_tier) = fields.get("per_tier") else {
        return Some(vec![checked(at, name.and(rule)?)?]);
    };
    let overrides = tiers::overrides(&per_tier, tiers, |at, tier| {
        let mut rule = for_tier(at, &fields, plain.clone())?;
        rule.tier = Some(tier.into());
        checked(at, rule)
    });
    let tiers = tiers::for_key(&per_tier, tiers?, listed.as_ref())?;
    let rules = tiers::expand(name.and(rule)?, overrides?, &tiers);
    let rules = rules.into_iter().map(|rule| checked(at, rule));
    rules.collect()
}

/// A rule as it is for one tier.
fn for_tier(at: &At<'_>, everybody: &Fields<'_>, plain: Rule) -> Option<Rule> {
    if at.scalar() == Some(UNLIMITED) {
        return Some(Rule {
            unlimited: true,
            conditions: plain.conditions,
            key: plain.key,
            ..Rule::new(plain.name, unlimited()?)
        });
    }
    if !at.node.is_map() {
        return at.expected("unlimited, or a mapping of what is otherwise for this tier");
    }
    let fields = at.fields(TIER_FIELDS)?;
    if fields.is_empty() {
        return at.expected("something that is otherwise for this tier");
    }
    limited(&fields.over(everybody), plain)
}

/// A plain rule with its limit, and how that is enforced.
fn limited(fields: &Fields<'_>, plain: Rule) -> Option<Rule> {
    let quota = quota(fields);
    // Read against a stand-in, so that a missing limit hides nothing else.
    let stand_in = stand_in()?;
    let (number, is_limited) = quota.unwrap_or((stand_in, true));
    let defaults = Rule {
        unlimited: !is_limited,
        conditions: plain.conditions,
        key: plain.key,
        ..Rule::new(plain.name, number)
    };
    let rule = enforcement(fields, defaults);
    quota?;
    if let Some(at) = fields.get("cost").filter(|_| is_limited) {
        cost::fits(&at, &rule.cost, rule.quota.capacity())?;
    }
    Some(rule)
}

fn checked(at: &At<'_>, rule: Rule) -> Option<Rule> {
    match rule.validate() {
        Ok(()) => Some(rule),
        Err(error) => at.refuse(error),
    }
}

fn name<'a>(at: &At<'a>) -> Option<&'a str> {
    let name = at.text("a name")?;
    at.checked(text::name(name))?;
    Some(name)
}

/// The quota, and whether there is any limit.
fn quota(fields: &Fields<'_>) -> Option<(Quota, bool)> {
    let limit = fields.need("limit");
    if limit.as_ref().and_then(At::scalar) == Some(UNLIMITED) {
        // What is said of it besides has to be right, and means nothing.
        let read = fields.get("window").map(|at| numbers::window(&at));
        return read
            .is_none_or(|window| window.is_some())
            .then_some((unlimited()?, false));
    }
    let limit = limit.and_then(|at| limit_of(&at));
    let window = fields.need("window").and_then(|at| numbers::window(&at));
    let algorithm = fields.or("algorithm", Algorithm::default(), |at| {
        words::read(at, words::ALGORITHM)
    });
    let burst = fields.get("burst").and_then(|at| burst(&at, algorithm));
    if (algorithm, window) == (Algorithm::TokenBucket, Some(Window::MONTH)) {
        return fields.get("window")?.refuse(RuleError::MonthlyBucket);
    }
    let quota = Quota::new(limit?, window?, algorithm);
    Some((burst.map_or(quota, |burst| quota.with_burst(burst)), true))
}

fn limit_of(at: &At<'_>) -> Option<NonZeroU64> {
    let what = format!("a whole number from 1 to {HITS_MAX}, or {UNLIMITED}");
    let number = numbers::digits(at.bare(&what)?);
    let number = number.filter(|number| (1..=HITS_MAX).contains(number));
    let limit = number.and_then(NonZeroU64::new);
    limit.or_else(|| at.expected(what))
}

/// The quota of what has no limit: nobody looks at it.
fn unlimited() -> Option<Quota> {
    let window = Window::new(Micros::from_secs(1))?;
    Some(Quota::new(NonZeroU64::MIN, window, Algorithm::default()))
}

fn burst(at: &At<'_>, algorithm: Algorithm) -> Option<NonZeroU64> {
    let burst = numbers::hits(at, 1)?;
    match algorithm {
        Algorithm::TokenBucket => NonZeroU64::new(burst),
        Algorithm::FixedWindow | Algorithm::SlidingWindow => {
            at.refuse("only algorithm token_bucket has a burst")
        }
    }
}

fn stand_in() -> Option<Quota> {
    let window = Window::new(Micros::from_secs(1))?;
    Some(Quota::new(NonZeroU64::MAX, window, Algorithm::default()))
}

/// How the rule is enforced: everything that has a default.
fn enforcement(fields: &Fields<'_>, rule: Rule) -> Rule {
    let bool = |name, default| fields.or(name, default, |at| words::read(at, words::BOOL));
    let zero = Micros::ZERO;
    Rule {
        cost: fields.or("cost", rule.cost, cost::read),
        refund: fields.or("refund", rule.refund, cost::refund),
        quota_headers: fields.or("ratelimit_headers", rule.quota_headers, cost::headers),
        count_denied: bool("count_denied", rule.count_denied),
        scope: fields.or("scope", rule.scope, |at| words::read(at, words::SCOPE)),
        consistency: fields.or("consistency", rule.consistency, |at| {
            words::read(at, words::CONSISTENCY)
        }),
        local_cap: fields.or("local_cap", rule.local_cap, |at| numbers::hits(at, 0)),
        tolerance_ppm: fields.or("tolerance", rule.tolerance_ppm, numbers::percent),
        hold: fields.or("hold", rule.hold, |at| numbers::span(at, zero, HOLD_MAX)),
        on_failure: fields.or("on_failure", rule.on_failure, on_failure),
        action: fields.or("action", rule.action, |at| words::read(at, words::ACTION)),
        penalty: fields.or("penalty", rule.penalty, |at| {
            numbers::span(at, zero, WINDOW_MAX)
        }),
        commit: fields.or("commit", rule.commit, |at| words::read(at, words::COMMIT)),
        response: fields.get("response").and_then(|at| response::read(&at)),
        ..rule
    }
}

fn on_failure(at: &At<'_>) -> Option<OnFailure> {
    let word = |at: &At<'_>| words::read(at, words::FALLBACK);
    if !at.node.is_map() {
        let both = word(at)?;
        return Some(OnFailure {
            no_lease: both,
            lease_expired: both,
        });
    }
    let fields = at.fields(&["no_lease", "lease_expired"])?;
    Some(OnFailure {
        no_lease: fields.or("no_lease", Fallback::default(), word),
        lease_expired: fields.or("lease_expired", Fallback::default(), word),
    })
}
