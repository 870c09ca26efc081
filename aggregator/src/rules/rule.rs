//! One rule, read from its mapping.

use std::num::NonZeroU64;

use limiter::{
    quota::{Algorithm, Quota},
    rule::{Fallback, HOLD_MAX, OnFailure, Rule, WINDOW_MAX, text},
    time::Micros,
    window::Window,
};

use super::{at::At, conditions, cost, fields::Fields, key, later, numbers, response, words};

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
];

/// The shortest window that a rule file can ask for.
const WINDOW_MIN: Micros = Micros::from_millis(1);

/// Reads a rule. Anything that is wrong has been noted.
pub(super) fn read(at: &At<'_>) -> Option<Rule> {
    let fields = at.fields(FIELDS, later::RULE)?;
    let name = fields.need("name").and_then(|at| name(&at));
    let quota = quota(&fields);
    let conditions = fields.or("match", Vec::new(), conditions::read);
    let key = fields.or("key", Vec::new(), key::read);
    // Read against a stand-in, so that a missing limit hides nothing else.
    let defaults = Rule::new(name.unwrap_or("?"), quota.unwrap_or(stand_in()?));
    let rule = Rule {
        conditions,
        key,
        ..enforcement(&fields, defaults)
    };
    name.and(quota)?;
    if let Some(at) = fields.get("cost") {
        cost::fits(&at, &rule.cost, rule.quota.capacity())?;
    }
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

fn quota(fields: &Fields<'_>) -> Option<Quota> {
    let limit = fields.need("limit").and_then(|at| limit(&at));
    let window = fields.need("window").and_then(|at| window(&at));
    let algorithm = fields.or("algorithm", Algorithm::default(), |at| {
        words::read(at, words::ALGORITHM)
    });
    let burst = fields.get("burst").and_then(|at| burst(&at, algorithm));
    let quota = Quota::new(limit?, window?, algorithm);
    Some(burst.map_or(quota, |burst| quota.with_burst(burst)))
}

fn limit(at: &At<'_>) -> Option<NonZeroU64> {
    match at.scalar() {
        Some("unlimited") => at.refuse(later::NOT_YET),
        _ => NonZeroU64::new(numbers::hits(at, 1)?),
    }
}

fn window(at: &At<'_>) -> Option<Window> {
    match at.scalar() {
        Some("month") => at.refuse(later::NOT_YET),
        _ => Window::new(numbers::span(at, WINDOW_MIN, WINDOW_MAX)?),
    }
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
    let fields = at.fields(&["no_lease", "lease_expired"], &[])?;
    Some(OnFailure {
        no_lease: fields.or("no_lease", Fallback::default(), word),
        lease_expired: fields.or("lease_expired", Fallback::default(), word),
    })
}
