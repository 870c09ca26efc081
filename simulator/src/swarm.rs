//! Fleets drawn at random, with everything going wrong, and every checker on.

use limiter::{
    quota::{Algorithm, Quota},
    rule::{Action, Consistency, Cost, KeyPart, Rule, Scope},
    time::Micros,
    window::Window,
};

use crate::{
    arrivals::Arrivals,
    chance::{Chance, Purpose},
    network::{Faults, Path},
    plan::{HEADER, Plan},
    response::Manner,
    scenario::{Fault, Traffic},
    setup::{Setup, seconds},
    world::World,
};

mod regions;

/// Where a swarm's runs begin: anywhere in an hour.
const START_S: u64 = 1_700_000_000;

/// A run in which something did not hold. The same seed makes it again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed} ({settings}): {}", what.join("; "))]
pub struct Failure {
    /// What the run was drawn from.
    pub seed: u64,
    /// What was drawn.
    pub settings: String,
    /// What did not hold.
    pub what: Vec<String>,
}

/// Draws one run of about so many requests from a seed and runs it.
pub fn swarm(seed: u64, requests: u64) -> Result<(), Failure> {
    run(draw(seed, requests))
}

/// The same of a fleet in several regions, mostly with an aggregator above them.
pub fn swarm_of_regions(seed: u64, requests: u64) -> Result<(), Failure> {
    run(regions::draw(draw(seed, requests)))
}

fn run(setup: Setup) -> Result<(), Failure> {
    let seed = setup.seed;
    let failed = |what| Failure {
        seed,
        settings: format!("{setup:?}"),
        what,
    };
    let plan = Plan::new(setup.rules.clone(), setup.keys).map_err(|error| failed(vec![error]))?;
    let run = World::new(&setup, &plan).run(Arrivals::new(&setup));
    if run.violations.is_empty() {
        Ok(())
    } else {
        Err(failed(run.violations))
    }
}

fn draw(seed: u64, requests: u64) -> Setup {
    let mut chance = Chance::new(seed, Purpose::Swarm);
    let pops = 1 + chance.place(12);
    let rules = rules(&mut chance);
    let traffic = traffic(&mut chance);
    let rate = rules
        .first()
        .map_or(1.0, |rule| traffic.rate_per_s(&rule.quota));
    let duration_s = (count(requests) / rate).clamp(0.5, 600.0);
    let mut setup = Setup {
        start: limiter::time::Timestamp::from_micros(START_S * 1_000_000)
            .after(chance.within(Micros::from_secs(3_600))),
        duration: seconds(duration_s),
        seed,
        keys: traffic.keys(),
        rules,
        traffic,
        regions: 1,
        pops,
        workers_per_pop: 1 + chance.place(4),
        skews: vec![0; pops],
        path: path(&mut chance),
        faults: Faults::default(),
        global: None,
        global_faults: Faults::default(),
        restarts: Vec::new(),
        commit: Micros::new(chance.one_of(&[0, 0, 300, 2_000, 15_000])),
        snapshots: chance
            .hits(0.5)
            .then(|| Micros::from_secs(1 + chance.below(20))),
        keys_max: chance.one_of(&[16, 100, 1_000, 100_000]),
        region_keys_max: None,
        flush_interval: Micros::from_millis(chance.one_of(&[200, 1_000, 3_000])),
        changes: Vec::new(),
        rebirths: Vec::new(),
        responses: None,
    };
    changes(&mut chance, &mut setup, duration_s);
    for fault in faults(&mut chance, pops, duration_s) {
        setup.fault(&fault);
    }
    responses(&mut chance, &mut setup);
    setup
}

/// Other limits, and other lives of sources, now and then.
fn changes(chance: &mut Chance, setup: &mut Setup, duration_s: f64) {
    while chance.hits(0.25) {
        let at = setup.start.after(seconds(chance.unit() * duration_s));
        let mut rules = setup.rules.clone();
        for rule in &mut rules {
            rule.quota.limit = chance
                .one_of(&[1, 20, 500, 5_000])
                .try_into()
                .unwrap_or(rule.quota.limit);
            afford(rule);
        }
        setup.changes.push((at, rules));
    }
    setup.changes.sort_by_key(|(at, _)| *at);
    while chance.hits(0.25) {
        let at = setup.start.after(seconds(chance.unit() * duration_s));
        let source = chance.place(setup.sources());
        setup.rebirths.push((at, source));
    }
}

/// A rule's cost is never more than it could ever admit.
fn afford(rule: &mut Rule) {
    let capacity = rule.quota.capacity();
    match &mut rule.cost {
        Cost::Fixed(cost) | Cost::ResponseHeader { upfront: cost, .. } => {
            *cost = capacity.min(*cost)
        }
        Cost::RequestHeader { max, .. } => *max = capacity.min(*max),
    }
}

/// Services whose answers some rules heed, now and then.
fn responses(chance: &mut Chance, setup: &mut Setup) {
    if !chance.hits(0.4) {
        return;
    }
    let manner = Manner {
        within: Micros::from_millis(chance.one_of(&[1, 20, 500, 5_000, 90_000])),
        failing: chance.one_of(&[0.0, 0.1, 0.5, 1.0]),
        cost_max: chance.one_of(&[0, 0, 1, 5, 60]),
    };
    setup.responses = Some(manner);
    let later = setup.changes.iter_mut().map(|(_, rules)| rules);
    let mut revisions: Vec<_> = std::iter::once(&mut setup.rules).chain(later).collect();
    let rules = revisions.first().map_or(0, |rules| rules.len());
    for place in (0..rules).filter(|_| chance.hits(0.7)) {
        for rule in revisions
            .iter_mut()
            .filter_map(|rules| rules.get_mut(place))
        {
            manner.heed(rule);
        }
    }
}

fn rules(chance: &mut Chance) -> Vec<Rule> {
    let rules = chance.one_of(&[1, 1, 1, 2, 3]);
    (0..rules).filter_map(|place| rule(chance, place)).collect()
}

fn rule(chance: &mut Chance, place: usize) -> Option<Rule> {
    let limit = chance.one_of(&[1, 3, 10, 50, 100, 1_000, 20_000]);
    let window = Window::new(Micros::from_millis(
        chance.one_of(&[100, 1_000, 10_000, 60_000, 3_600_000]),
    ))?;
    let algorithm = chance.one_of(&[
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::TokenBucket,
    ]);
    let mut quota = Quota::new(limit.try_into().ok()?, window, algorithm);
    if algorithm == Algorithm::TokenBucket && chance.hits(0.5) {
        quota = quota.with_burst((1 + chance.below(2 * limit)).try_into().ok()?);
    }
    let mut rule = Rule::new(format!("rule-{place}"), quota);
    // The first is counted per key; others may be counted for all keys together.
    if place == 0 || chance.hits(0.5) {
        rule.key = vec![KeyPart::Header(HEADER.to_owned())];
    }
    rule.scope = chance.one_of(&[Scope::Region, Scope::Region, Scope::Global, Scope::Pop]);
    rule.consistency = chance.one_of(&[
        Consistency::Leased,
        Consistency::Leased,
        Consistency::Leased,
        Consistency::Edge,
        Consistency::Exact,
    ]);
    rule.count_denied = chance.hits(0.1);
    if chance.hits(0.1) {
        rule.action = Action::Shadow;
    }
    if chance.hits(0.1) {
        rule.penalty = Micros::from_millis(chance.one_of(&[100, 5_000]));
    }
    rule.cost = chance.one_of(&[1, 1, 1, 2, 5]).min(quota.capacity()).into();
    rule.tolerance_ppm = chance.one_of(&[0, 20_000, 20_000, 100_000]);
    rule.hold = Micros::from_millis(chance.one_of(&[0, 5, 5, 50]));
    Some(rule)
}

fn traffic(chance: &mut Chance) -> Traffic {
    let load = chance.one_of(&[0.2, 0.8, 1.0, 3.0, 20.0]);
    let keys = chance.one_of(&[1, 1, 3, 40, 500]);
    match chance.below(4) {
        0 => Traffic::Spray { load, keys },
        1 => Traffic::Moving {
            load,
            keys,
            dwell_s: chance.one_of(&[0.2, 1.0, 5.0]),
        },
        2 => Traffic::Burst {
            load,
            keys,
            burst_every_s: chance.one_of(&[2.0, 10.0]),
            burst_size: chance.one_of(&[5, 50, 500]),
        },
        _ => Traffic::Zipf {
            load,
            keys,
            exponent: 1.1,
            total_rps: chance.one_of(&[10.0, 200.0, 2_000.0]),
        },
    }
}

fn path(chance: &mut Chance) -> Path {
    let round_trip = Micros::new(chance.one_of(&[200, 2_000, 20_000, 150_000]));
    path_of(round_trip, chance)
}

fn path_of(round_trip: Micros, chance: &mut Chance) -> Path {
    Path {
        round_trip,
        jitter: chance.within(round_trip),
        timeout: Micros::from_millis(chance.one_of(&[500, 1_000, 5_000])),
    }
}

fn faults(chance: &mut Chance, pops: usize, duration_s: f64) -> Vec<Fault> {
    let mut faults = Vec::new();
    while chance.hits(0.6) {
        let at_s = chance.unit() * duration_s;
        let down_s = chance.one_of(&[0.05, 1.0, 10.0, 60.0]);
        faults.push(match chance.below(5) {
            0 => Fault::RegionRestart {
                region: 0,
                at_s,
                down_s,
            },
            1 => Fault::RegionUnreachable {
                region: 0,
                at_s,
                down_s,
            },
            2 => Fault::PopPartition {
                pop: chance.place(pops),
                at_s,
                down_s,
            },
            3 => Fault::Loss {
                request_rate: chance.one_of(&[0.0, 0.05, 0.3]),
                reply_rate: chance.one_of(&[0.0, 0.05, 0.3]),
                duplicate_rate: chance.one_of(&[0.0, 0.05, 0.3]),
                reorder_rate: chance.one_of(&[0.0, 0.05, 0.3]),
            },
            _ => Fault::ClockSkew {
                pop_offsets_ms: (0..pops).map(|_| skew(chance)).collect(),
            },
        });
    }
    faults
}

fn skew(chance: &mut Chance) -> i64 {
    chance.one_of(&[-10_000, -500, -3, 0, 0, 0, 3, 500, 10_000])
}

#[allow(
    clippy::cast_precision_loss,
    reason = "about so many is all that is asked for"
)]
fn count(requests: u64) -> f64 {
    requests as f64
}
