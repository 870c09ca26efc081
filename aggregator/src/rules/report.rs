//! What a rule file says, in words: for people to read and programs to compare.

use std::fmt;

use limiter::bound::{Cost, Fleet, Over, least_without_waiting};
use limiter::quota::{Algorithm, Quota};
use limiter::rule::{Condition, Rule, Scope};
use serde::Serialize;

use super::{
    conditions,
    cost::{self, CostSaid},
    file::RuleFile,
    key,
    numbers::{Per, Percent, Written},
    response, words,
};

/// The load that costs are worked out for, in percent of the limit: where asking
/// costs most.
const AT_THE_LIMIT: u32 = 100;

/// A rule file in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RulesReport {
    /// Whose rules these are.
    pub domain: String,
    /// The proxies whose word on the client's address is taken.
    pub trusted_proxies: Vec<String>,
    /// Sources that share each limit: what the bounds are worked out for.
    pub sources: u32,
    /// How far away the region is: likewise.
    pub round_trip: String,
    /// The rules, in their order.
    pub rules: Vec<RuleReport>,
}

/// A rule in words, with every default written out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleReport {
    /// What it is called.
    pub name: String,
    /// The tier that it is for, of a rule that sets tiers apart; none: everybody, or
    /// everybody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// What must hold for it to apply, each in short; none: it always applies.
    pub r#match: Vec<String>,
    /// What must hold besides, each in short, for a request to be of its tier, or of
    /// none that others of its name are for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<String>,
    /// What it counts per; none: one count for all.
    pub key: Vec<String>,
    /// Hits per window.
    pub limit: Limit,
    /// The window.
    pub window: String,
    /// How it counts.
    pub algorithm: &'static str,
    /// What a full token bucket holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// What one request spends.
    pub cost: CostSaid,
    /// Statuses of a response for which its request has spent nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refund: Vec<String>,
    /// Whether a denied request spends, too.
    pub count_denied: bool,
    /// Among whom the limit is shared.
    pub scope: &'static str,
    /// How it is kept.
    pub consistency: &'static str,
    /// The most that one source admits per window when it cannot ask.
    pub local_cap: u64,
    /// How far over the limit it may lead.
    pub tolerance: String,
    /// How long a request may wait for the region.
    pub hold: String,
    /// What happens to a key that was never lent anything, the region away.
    pub no_lease: &'static str,
    /// What happens to a key whose lease ran out, the region away.
    pub lease_expired: &'static str,
    /// Whether a denial is carried out.
    pub action: &'static str,
    /// How long a key stays denied once it has exceeded its limit.
    pub penalty: String,
    /// When the region answers a check.
    pub commit: &'static str,
    /// What a denied client is answered, if the rule says so itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// Which headers tell a client of its quota, and when.
    pub ratelimit_headers: String,
    /// The most that is admitted of one key in one window.
    pub bound: Bound,
    /// Questions to the region per hundred requests for a key whose traffic is
    /// just what its limit allows, about; the flush each second not counted.
    pub asks_percent: f64,
    /// Of a hundred such requests, how many wait for the answer.
    pub held_percent: f64,
    /// What is allowed and hardly meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The most that a fleet admits of one key in one window, the region alive: the
/// worst that its rule's settings allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// So many hits.
    pub hits: u64,
    /// How many of them are more than one exact limiter would have admitted.
    pub over: u64,
    /// Whether that is for each source, not for all of them together.
    pub per_source: bool,
}

/// A limit in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Limit {
    /// So many hits per window.
    Hits(u64),
    /// `unlimited`: the rule applies to nothing.
    None(&'static str),
}

impl Limit {
    pub(super) const fn of(rule: &Rule) -> Self {
        match rule.unlimited {
            true => Self::None("unlimited"),
            false => Self::Hits(rule.quota.limit.get()),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hits(hits) => hits.fmt(f),
            Self::None(word) => f.write_str(word),
        }
    }
}

impl RulesReport {
    /// Puts a rule file in words.
    pub fn of(file: &RuleFile, fleet: Fleet) -> Self {
        Self {
            domain: file.domain.clone(),
            trusted_proxies: texts(&file.trusted_proxies),
            sources: fleet.sources,
            round_trip: Written(fleet.round_trip).to_string(),
            rules: file
                .rules
                .iter()
                .map(|rule| RuleReport::of(rule, fleet))
                .collect(),
        }
    }
}

impl RuleReport {
    /// Puts a rule in words.
    pub fn of(rule: &Rule, fleet: Fleet) -> Self {
        let quota = &rule.quota;
        let asking = Cost::of(rule, fleet, AT_THE_LIMIT);
        Self {
            name: rule.name.clone(),
            tier: rule.tier.clone(),
            r#match: written(&rule.conditions),
            when: written(&rule.when),
            key: rule
                .key
                .iter()
                .map(|part| key::Written(part).to_string())
                .collect(),
            limit: Limit::of(rule),
            window: Per(quota.window).to_string(),
            algorithm: words::name(words::ALGORITHM, &quota.algorithm),
            burst: (quota.algorithm == Algorithm::TokenBucket).then(|| quota.capacity()),
            cost: CostSaid::of(&rule.cost),
            refund: cost::statuses(&rule.refund),
            count_denied: rule.count_denied,
            scope: words::name(words::SCOPE, &rule.scope),
            consistency: words::name(words::CONSISTENCY, &rule.consistency),
            local_cap: rule.local_cap,
            tolerance: Percent(rule.tolerance_ppm).to_string(),
            hold: Written(rule.hold).to_string(),
            no_lease: words::name(words::FALLBACK, &rule.on_failure.no_lease),
            lease_expired: words::name(words::FALLBACK, &rule.on_failure.lease_expired),
            action: words::name(words::ACTION, &rule.action),
            penalty: Written(rule.penalty).to_string(),
            commit: words::name(words::COMMIT, &rule.commit),
            response: rule.response.as_ref().map(response::words),
            ratelimit_headers: cost::headers_said(rule.quota_headers),
            bound: Bound::of(rule, fleet),
            asks_percent: percent(asking.asks_ppm),
            held_percent: percent(asking.held_ppm),
            warning: warning(rule, fleet),
        }
    }
}

/// Whether this fleet would deny what the rule allows.
fn warning(rule: &Rule, fleet: Fleet) -> Option<String> {
    let least = least_without_waiting(rule, fleet)?;
    let away = Written(fleet.round_trip);
    let (limit, hold) = (rule.quota.capacity(), Written(rule.hold));
    (!rule.unlimited && limit < least).then(|| {
        format!(
            "the first requests of each key are denied: the region is {away} away and hold is \
             {hold}, so nobody waits for it, and {limit} are too few to admit any unasked; \
             a hold longer than {away} mends that, or a limit of {least} or more"
        )
    })
}

impl Bound {
    fn of(rule: &Rule, fleet: Fleet) -> Self {
        let over = Over::of(rule, fleet).hits();
        Self {
            hits: exact(&rule.quota).saturating_add(over),
            over,
            per_source: rule.scope == Scope::Pop,
        }
    }
}

/// The most that one exact limiter would admit in one window: a bucket may be
/// full as it begins, and refills meanwhile.
fn exact(quota: &Quota) -> u64 {
    match quota.algorithm {
        Algorithm::TokenBucket => quota.capacity().saturating_add(quota.limit.get()),
        Algorithm::FixedWindow | Algorithm::SlidingWindow => quota.limit.get(),
    }
}

/// Parts of a million as a percentage.
fn percent(ppm: u32) -> f64 {
    f64::from(ppm) / 10_000.0
}

fn written(conditions: &[Condition]) -> Vec<String> {
    let conditions = conditions.iter();
    let written = conditions.map(|one| conditions::Written(one).to_string());
    written.collect()
}

fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}
