//! Vectors with right answers, replayed on a ledger and on a limiter alone.

use std::{num::NonZeroU64, sync::Arc};

use limiter::{
    decision::Verdict,
    edge::{Identity, Limiter, Settings},
    ledger::Ledger,
    request::Query,
    rule::{KeyPart, Rule, Scope},
    ruleset::RuleSet,
    time::{Micros, Timestamp},
    window::Window,
};
use serde::Deserialize;

use crate::{
    disk::{self, Disk},
    plan::{Asked, HEADER, quota, ruleset, window},
    run::{Outcome, parse, select},
    scenario::AlgorithmSpec,
};

/// One rule, and requests with the answers they must get.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    algorithm: AlgorithmSpec,
    limit: NonZeroU64,
    /// One of these two.
    window_ms: Option<NonZeroU64>,
    window: Option<Calendar>,
    burst: Option<NonZeroU64>,
    steps: Vec<Step>,
}

/// A window that is none of so many milliseconds.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Calendar {
    Month,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    at_ms: u64,
    key: String,
    cost: u64,
    allow: bool,
    remaining: u64,
    retry_after_ms: Option<u64>,
}

/// Whoever decides: a ledger, or a limiter alone.
pub(crate) enum Decider {
    Ledger(Box<Ledger>, Disk),
    Limiter(Box<Limiter>),
}

/// Replays a file of vectors, up to the first answer that differs.
pub(crate) fn replay(text: &str, only: Option<&str>) -> Result<Outcome, String> {
    let vectors = select(parse::<Vector>(text)?, only, |vector| &vector.name)?;
    for vector in &vectors {
        for scope in [Scope::Region, Scope::Pop] {
            if let Some(text) = vector.differs(scope)? {
                return Ok(Outcome { text, exit_code: 1 });
            }
        }
    }
    let steps: usize = vectors.iter().map(|vector| vector.steps.len()).sum();
    let text = format!(
        "{} vectors, {steps} steps: all as they should be, on a ledger and on a limiter alone\n",
        vectors.len()
    );
    Ok(Outcome { text, exit_code: 0 })
}

impl Vector {
    /// The first answer that differs, in words.
    fn differs(&self, scope: Scope) -> Result<Option<String>, String> {
        let rules = self.rules(scope)?;
        let mut decider = Decider::new(scope, &rules);
        for (place, step) in self.steps.iter().enumerate() {
            let verdict = decider.decide(&step.query(&rules), Timestamp::from_millis(step.at_ms));
            if let Err(difference) = step.compare(&verdict) {
                let (name, who) = (&self.name, decider.name());
                return Ok(Some(format!(
                    "{name}, step {place} (at {} ms, key {}, cost {}), {who}: {difference}\n",
                    step.at_ms, step.key, step.cost
                )));
            }
        }
        Ok(None)
    }

    fn rules(&self, scope: Scope) -> Result<Arc<RuleSet>, String> {
        let window = match (self.window_ms, self.window) {
            (Some(ms), None) => window(ms),
            (None, Some(Calendar::Month)) => Some(Window::MONTH),
            _ => return Err(format!(" {}: say window_ms or window", self.name)),
        };
        let window = window.ok_or_else(|| format!(" {}: the window is empty", self.name))?;
        let quota = quota(self.algorithm, self.limit, window, self.burst);
        let mut rule = Rule::new("vector", quota);
        rule.key = vec![KeyPart::Header(HEADER.to_owned())];
        rule.scope = scope;
        ruleset(vec![rule]).map_err(|error| format!(" {}: {error}", self.name))
    }
}

impl Step {
    fn query(&self, rules: &Arc<RuleSet>) -> Query {
        let mut query = rules.resolve(&Asked {
            path: "/",
            key: &self.key,
        });
        for hit in &mut query.hits {
            hit.cost = self.cost;
        }
        query
    }

    fn compare(&self, verdict: &Verdict) -> Result<(), String> {
        let (allow, decision) = match verdict {
            Verdict::Allow(decision) => (true, decision),
            Verdict::Deny(decision) => (false, decision),
            Verdict::Pass => return Err("no rule applied".to_owned()),
            Verdict::Hold { .. } => return Err("it was held".to_owned()),
        };
        expect("allow", self.allow, allow)?;
        expect("remaining", self.remaining, decision.remaining)?;
        let retry = decision.retry_after.map(Micros::as_millis_ceil);
        let retry = retry.filter(|_| !allow);
        expect("retry_after_ms", Words(self.retry_after_ms), Words(retry))
    }
}

/// A number that may be missing, as JSON has it.
#[derive(PartialEq)]
struct Words(Option<u64>);

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("null"),
        }
    }
}

fn expect<T: PartialEq + std::fmt::Display>(name: &str, right: T, is: T) -> Result<(), String> {
    if right == is {
        Ok(())
    } else {
        Err(format!("{name} is {is}, should be {right}"))
    }
}

impl Decider {
    /// One with these rules in force: of rules for a source alone, a limiter.
    pub(crate) fn new(scope: Scope, rules: &Arc<RuleSet>) -> Self {
        if scope == Scope::Pop {
            return Self::Limiter(Box::new(limiter(rules)));
        }
        let (mut ledger, mut disk) = (disk::ledger(), Disk::new(Micros::ZERO));
        ledger.set_rules(Arc::clone(rules), Timestamp::default(), &mut disk);
        Self::Ledger(Box::new(ledger), disk)
    }

    pub(crate) fn decide(&mut self, query: &Query, now: Timestamp) -> Verdict {
        match self {
            Self::Ledger(ledger, disk) => ledger.check(query, now, disk.at(now)),
            Self::Limiter(limiter) => limiter.decide(query, now),
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Ledger(..) => "on a ledger",
            Self::Limiter(_) => "on a limiter alone",
        }
    }
}

fn limiter(rules: &Arc<RuleSet>) -> Limiter {
    let identity = Identity {
        source: 1,
        epoch: 1,
        pop: "alone".to_owned(),
    };
    let settings = Settings {
        keys_max: 10_000,
        flush_interval: Micros::from_secs(1),
        hash_seeds: [1, 2, 3, 4],
    };
    let mut limiter = Limiter::new(identity, settings);
    limiter.set_rules(Arc::clone(rules));
    limiter
}
