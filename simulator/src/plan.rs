//! What is asked: the rules in force, and one query for each key.
//!
//! A million keys are common, so what is kept of each is what it spends, and no more.

use std::{net::IpAddr, num::NonZeroU64, sync::Arc};

use limiter::{
    key::HashSeed,
    quota::{Algorithm, Quota},
    request::{Hit, Query, Request},
    rule::{KeyPart, Rule, Scope},
    ruleset::RuleSet,
    time::Micros,
    window::Window,
};

use crate::{
    response::Manner,
    scenario::{AlgorithmSpec, ResponsesSpec, RuleSpec, ScopeSpec, Traffic},
    setup::millis,
};

/// The header that every simulated request carries its key in.
pub(crate) const HEADER: &str = "x-key";

/// The rules of a run, and what each of its requests spends under them.
pub(crate) struct Plan {
    pub(crate) rules: Arc<RuleSet>,
    /// What all queries spend, one after the other.
    hits: Vec<Hit>,
    /// Where those of each end, by key of the traffic.
    ends: Vec<usize>,
}

/// A request of which only the path and the key matter.
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a str,
    pub(crate) key: &'a str,
}

impl Plan {
    /// Asks each of `keys` keys of these rules.
    pub(crate) fn new(rules: Vec<Rule>, keys: usize) -> Result<Self, String> {
        let rules = ruleset(rules)?;
        let queries = (0..keys).map(|key| {
            rules.resolve(&Asked {
                path: "/",
                key: &key.to_string(),
            })
        });
        Ok(Self::of(Arc::clone(&rules), queries))
    }

    /// Asks these queries of these rules.
    pub(crate) fn of(rules: Arc<RuleSet>, queries: impl Iterator<Item = Query>) -> Self {
        let (mut hits, mut ends) = (Vec::new(), Vec::new());
        for query in queries {
            hits.extend_from_slice(&query.hits);
            ends.push(hits.len());
        }
        Self { rules, hits, ends }
    }

    /// What a key of the traffic asks.
    pub(crate) fn query(&self, key: usize) -> Query {
        let start = key.checked_sub(1).map_or(0, |before| self.ends[before]);
        Query {
            rules: Arc::clone(&self.rules),
            hits: self.hits[start..self.ends[key]].into(),
        }
    }

    /// Keys of the traffic.
    pub(crate) const fn keys(&self) -> usize {
        self.ends.len()
    }

    /// Counters asked for; each as often as it is.
    pub(crate) const fn counters(&self) -> usize {
        self.hits.len()
    }
}

/// The rules as one set, the first of its domain.
pub(crate) fn ruleset(rules: Vec<Rule>) -> Result<Arc<RuleSet>, String> {
    revised(1, rules)
}

/// The same set in a later revision.
pub(crate) fn revised(revision: u64, rules: Vec<Rule>) -> Result<Arc<RuleSet>, String> {
    RuleSet::new(
        "simulated",
        revision,
        Vec::new(),
        HashSeed::default(),
        rules,
    )
    .map(Arc::new)
    .map_err(|error| error.to_string())
}

/// A window of so many milliseconds.
pub(crate) fn window(window_ms: NonZeroU64) -> Option<Window> {
    Window::new(Micros::from_millis(window_ms.get()))
}

/// A quota.
pub(crate) fn quota(
    algorithm: AlgorithmSpec,
    limit: NonZeroU64,
    window: Window,
    burst: Option<NonZeroU64>,
) -> Quota {
    let algorithm = match algorithm {
        AlgorithmSpec::FixedWindow => Algorithm::FixedWindow,
        AlgorithmSpec::SlidingWindow => Algorithm::SlidingWindow,
        AlgorithmSpec::TokenBucket => Algorithm::TokenBucket,
    };
    let quota = Quota::new(limit, window, algorithm);
    burst.map_or(quota, |burst| quota.with_burst(burst))
}

impl From<ScopeSpec> for Scope {
    fn from(scope: ScopeSpec) -> Self {
        match scope {
            ScopeSpec::Region => Self::Region,
            ScopeSpec::Global => Self::Global,
        }
    }
}

impl RuleSpec {
    /// The rule, counted per key, with the defaults where it says nothing.
    pub(crate) fn to_rule(&self, name: &str) -> Option<Rule> {
        let window = window(self.window_ms)?;
        let quota = quota(self.algorithm, self.limit, window, self.burst);
        let mut rule = Rule::new(name, quota);
        rule.key = vec![KeyPart::Header(HEADER.to_owned())];
        rule.local_cap = self.local_cap.unwrap_or(rule.local_cap);
        rule.tolerance_ppm = self.tolerance_ppm.unwrap_or(rule.tolerance_ppm);
        rule.scope = self.scope.into();
        rule.hold = self.hold_ms.map_or(rule.hold, Micros::from_millis);
        Some(rule)
    }
}

impl ResponsesSpec {
    /// How services answer.
    pub(crate) fn manner(&self) -> Manner {
        Manner {
            within: millis(self.within_ms),
            failing: self.failing,
            cost_max: self.cost_max,
        }
    }
}

impl Traffic {
    /// How many keys it asks for.
    pub(crate) const fn keys(&self) -> usize {
        match *self {
            Self::Spray { keys, .. }
            | Self::Moving { keys, .. }
            | Self::Burst { keys, .. }
            | Self::Zipf { keys, .. } => keys,
        }
    }

    /// Its mean rate in requests a second, bursts apart, under a rule.
    #[allow(
        clippy::cast_precision_loss,
        reason = "limits that large are not simulated to the request"
    )]
    pub(crate) fn rate_per_s(&self, quota: &Quota) -> f64 {
        match *self {
            Self::Spray { load, .. } | Self::Moving { load, .. } | Self::Burst { load, .. } => {
                let window_s = quota.window.longest().get() as f64 / 1e6;
                load * quota.limit.get() as f64 / window_s
            }
            Self::Zipf { total_rps, .. } => total_rps,
        }
    }
}

impl Request for Asked<'_> {
    fn method(&self) -> &[u8] {
        b"GET"
    }

    fn host(&self) -> &[u8] {
        b"simulated"
    }

    fn path(&self) -> &[u8] {
        self.path.as_bytes()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        (name == HEADER).then_some(self.key.as_bytes())
    }

    fn address(&self) -> Option<IpAddr> {
        None
    }
}
