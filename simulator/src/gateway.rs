//! A gateway's routes with limits of their own: one process alone, or several
//! that share their counts through a region.

use std::{collections::BTreeMap, num::NonZeroU64, sync::Arc};

use limiter::{
    decision::Verdict,
    request::Query,
    rule::{Condition, KeyPart, Rule, Scope},
    ruleset::RuleSet,
    time::{Micros, Timestamp},
};
use serde::Deserialize;

use crate::{
    arrivals::Arrival,
    network::{Faults, Path},
    plan::{Asked, HEADER, Plan, quota, ruleset, window},
    run::{Outcome, parse, select},
    scenario::{AlgorithmSpec, Traffic},
    setup::Setup,
    vectors::Decider,
    world::World,
};

/// When the requests of a case begin: an instant that minutes are aligned to.
const START: Timestamp = Timestamp::from_millis(1_700_000_040_000);

/// Routes with their limits, and requests with the answers they must get.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gateway {
    name: String,
    rules: BTreeMap<String, NonZeroU64>,
    window_ms: NonZeroU64,
    algorithm: AlgorithmSpec,
    #[serde(default)]
    processes: Option<usize>,
    /// At, in milliseconds; who; which route.
    requests: Vec<(u64, String, String)>,
    #[serde(default)]
    allow: Option<Vec<bool>>,
    #[serde(default)]
    allowed_total: Option<u64>,
}

/// Replays a file of such cases, up to the first answer that differs.
pub(crate) fn replay(text: &str, only: Option<&str>) -> Result<Outcome, String> {
    let cases = select(parse::<Gateway>(text)?, only, |case| &case.name)?;
    for case in &cases {
        let differs = case
            .differs()
            .map_err(|error| format!(" {}: {error}", case.name))?;
        if let Some(difference) = differs {
            let text = format!("{}{difference}\n", case.name);
            return Ok(Outcome { text, exit_code: 1 });
        }
    }
    let text = format!("{} gateways: all as they should be\n", cases.len());
    Ok(Outcome { text, exit_code: 0 })
}

impl Gateway {
    /// The first answer that differs, in words.
    fn differs(&self) -> Result<Option<String>, String> {
        let scopes: &[Scope] = match self.processes {
            None => &[Scope::Region, Scope::Pop],
            Some(_) => &[Scope::Region],
        };
        for scope in scopes {
            let rules = ruleset(self.rules(*scope)?)?;
            let mut decider = Decider::new(*scope, &rules);
            if let Some(difference) = self.differs_on(&mut decider, &rules) {
                return Ok(Some(difference));
            }
        }
        self.processes
            .map_or(Ok(None), |processes| self.differs_among(processes))
    }

    fn rules(&self, scope: Scope) -> Result<Vec<Rule>, String> {
        let rule = |(route, limit): (&String, &NonZeroU64)| {
            let quota = quota(self.algorithm, *limit, window(self.window_ms)?, None);
            let mut rule = Rule::new(route.as_str(), quota);
            rule.conditions = vec![Condition::Path(vec![format!("/{route}")])];
            rule.key = vec![KeyPart::Header(HEADER.to_owned())];
            rule.scope = scope;
            Some(rule)
        };
        let rules: Option<Vec<Rule>> = self.rules.iter().map(rule).collect();
        rules.ok_or_else(|| "the window is empty".to_owned())
    }

    fn queries(&self, rules: &Arc<RuleSet>) -> Vec<Query> {
        let query = |(_, key, route): &(u64, String, String)| {
            rules.resolve(&Asked {
                path: &format!("/{route}"),
                key,
            })
        };
        self.requests.iter().map(query).collect()
    }

    fn times(&self) -> impl Iterator<Item = Timestamp> {
        let at = |(at_ms, _, _): &(u64, String, String)| START.after(Micros::from_millis(*at_ms));
        self.requests.iter().map(at)
    }

    fn differs_on(&self, decider: &mut Decider, rules: &Arc<RuleSet>) -> Option<String> {
        let queries = self.queries(rules);
        let verdicts = queries.iter().zip(self.times());
        let allow: Vec<bool> = verdicts
            .map(|(query, now)| matches!(decider.decide(query, now), Verdict::Allow(_)))
            .collect();
        let who = decider.name();
        if let Some(right) = &self.allow
            && let Some(place) = (0..allow.len()).find(|at| right.get(*at) != allow.get(*at))
        {
            return Some(format!(
                ", request {place}, {who}: allow is {}, should be {:?}",
                allow[place],
                right.get(place)
            ));
        }
        self.differs_total(allow.iter().filter(|allow| **allow).count() as u64, who)
    }

    fn differs_total(&self, allowed: u64, who: &str) -> Option<String> {
        let right = self.allowed_total?;
        (right != allowed).then(|| format!(", {who}: {allowed} are allowed, should be {right}"))
    }

    /// The same with the requests going to each process in turn.
    fn differs_among(&self, processes: usize) -> Result<Option<String>, String> {
        let setup = self.setup(processes)?;
        let rules = ruleset(setup.rules.clone())?;
        let plan = Plan::of(Arc::clone(&rules), self.queries(&rules).into_iter());
        let arrivals = self.times().enumerate().map(|(place, at)| Arrival {
            at,
            source: place % processes,
            key: place,
        });
        let run = World::new(&setup, &plan).run(arrivals);
        let who = format!("by {processes} processes");
        Ok(match run.violations.first() {
            Some(violation) => Some(format!(", {who}: {violation}")),
            None => self.differs_total(run.tally.admitted, &who),
        })
    }

    fn setup(&self, processes: usize) -> Result<Setup, String> {
        let last = self.requests.iter().map(|(at_ms, ..)| *at_ms).max();
        Ok(Setup {
            start: START,
            duration: Micros::from_millis(last.unwrap_or_default() + 1),
            seed: 1,
            rules: self.rules(Scope::Region)?,
            traffic: Traffic::Spray { load: 1.0, keys: 1 },
            keys: 1,
            regions: 1,
            pops: processes.max(1),
            workers_per_pop: 1,
            skews: Vec::new(),
            path: Path {
                round_trip: Micros::from_millis(1),
                jitter: Micros::ZERO,
                timeout: Micros::from_secs(1),
            },
            faults: Faults::default(),
            global: None,
            global_faults: Faults::default(),
            restarts: Vec::new(),
            commit: Micros::ZERO,
            snapshots: None,
            keys_max: 10_000,
            region_keys_max: None,
            flush_interval: Micros::from_secs(1),
            changes: Vec::new(),
            rebirths: Vec::new(),
            responses: None,
        })
    }
}
