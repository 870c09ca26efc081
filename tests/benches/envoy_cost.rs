//! What the filter costs Envoy: processor time added to a request, over no
//! filter, beside a filter that does nothing and Envoy's own local limiter.
//!
//! All Envoys run at once and are loaded in turn, round after round, so that a
//! busy machine is busy for all of them alike; the median round counts. Envoy
//! answers the requests itself.
//!
//! `WEIR_COST_MODULES=name=path,...` adds modules; `WEIR_COST_ROUNDS` and
//! `WEIR_COST_REQUESTS` (a round, per Envoy) change the effort.

#![expect(
    clippy::expect_used,
    reason = "a bench that cannot measure ends at once"
)]

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use limiter::rule::{Condition, KeyPart, Rule};
use weir_tests::binaries;
use weir_tests::envoy::Envoy;
use weir_tests::envoy_config::{Filter, Setup};
use weir_tests::http;
use weir_tests::region::Region;
use weir_tests::rules::{per_address, per_header, per_window};
use weir_tests::wait::wait_until;

/// Far more than is sent.
const LIMIT: u64 = 1_000_000_000_000;

/// Connections that one Envoy is loaded over.
const CONNECTIONS: u64 = 4;

/// Keys that each connection goes through, one after the other.
const KEYS: u64 = 2_500;

struct Candidate {
    name: String,
    envoy: Envoy,
    /// Kept so that it goes on answering.
    _region: Option<Region>,
    /// Time spent a request, one value a round, in nanoseconds.
    costs: Vec<u64>,
}

fn main() {
    let rounds = number("WEIR_COST_ROUNDS", 15);
    let requests = number("WEIR_COST_REQUESTS", 20_000);
    let mut candidates = candidates();
    for candidate in &mut candidates {
        cost(&mut candidate.envoy, requests);
    }
    for _ in 0..rounds {
        for candidate in &mut candidates {
            let nanos = cost(&mut candidate.envoy, requests).as_nanos();
            candidate
                .costs
                .push(u64::try_from(nanos).unwrap_or(u64::MAX) / requests.max(1));
        }
    }
    report(&candidates);
}

fn candidates() -> Vec<Candidate> {
    let wasm = |module: PathBuf| Filter::Wasm {
        module,
        config: String::new(),
        capabilities: Vec::new(),
    };
    let mut candidates = vec![
        plain("no filter", Filter::Bare),
        plain("local_ratelimit", Filter::LocalRateLimit),
        plain("no-op wasm", wasm(binaries::noop_wasm())),
        ruled("weir, no rules", Vec::new()),
        ruled(
            "weir, per header",
            vec![per_header("a", "x-api-key", LIMIT, 3_600)],
        ),
        ruled("weir, per address", vec![per_address("a", LIMIT, 3_600)]),
        ruled("weir, four rules", four_rules()),
    ];
    let more = env::var("WEIR_COST_MODULES").unwrap_or_default();
    let more = more.split(',').filter_map(|pair| pair.split_once('='));
    candidates.extend(more.map(|(name, path)| plain(name, wasm(path.into()))));
    candidates
}

fn plain(name: &str, filter: Filter) -> Candidate {
    let envoy = Envoy::start(Setup::new(filter));
    Candidate {
        name: name.to_owned(),
        envoy,
        _region: None,
        costs: Vec::new(),
    }
}

/// The filter with these rules, none of which denies.
fn ruled(name: &str, rules: Vec<Rule>) -> Candidate {
    let region = Region::start(rules);
    let envoy = Envoy::with_weir("", 1, Some(region.address()));
    wait_until("the rules are in force", || {
        region.sources_up_to_date() == 2
    });
    Candidate {
        name: name.to_owned(),
        envoy,
        _region: Some(region),
        costs: Vec::new(),
    }
}

/// Per header, per address, per path and for all: every part of a request is
/// looked at.
fn four_rules() -> Vec<Rule> {
    let mut per_path = per_window("c", LIMIT, 3_600);
    per_path.conditions = vec![Condition::Method(vec!["GET".into()])];
    per_path.key = vec![KeyPart::Path];
    vec![
        per_header("a", "x-api-key", LIMIT, 3_600),
        per_address("b", LIMIT, 3_600),
        per_path,
        per_window("d", LIMIT, 3_600),
    ]
}

fn cost(envoy: &mut Envoy, requests: u64) -> Duration {
    let address = envoy.address();
    let before = envoy.process().cpu_time();
    thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            scope.spawn(move || drive(address, connection, requests / CONNECTIONS));
        }
    });
    envoy.process().cpu_time().saturating_sub(before)
}

fn drive(address: SocketAddr, connection: u64, requests: u64) {
    let mut stream = http::Connection::open(address).expect("Envoy takes connections");
    for n in 0..requests {
        let key = format!("key-{connection}-{}", n % KEYS);
        let headers = [
            ("user-agent", "envoy-cost/1"),
            ("accept", "*/*"),
            ("x-api-key", key.as_str()),
        ];
        let answer = stream
            .send(&http::get("/v1/things?id=7", &headers))
            .expect("Envoy answers");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

fn report(candidates: &[Candidate]) {
    let bare = candidates.first().map_or(&[][..], |c| &c.costs);
    println!(
        "{:<20} {:>11} {:>9} {:>22}",
        "filter", "us/request", "added us", "added, quartiles"
    );
    for Candidate { name, costs, .. } in candidates {
        let added: Vec<f64> = costs
            .iter()
            .zip(bare)
            .map(|(&cost, &bare)| micros(cost) - micros(bare))
            .collect();
        let all: Vec<f64> = costs.iter().map(|&cost| micros(cost)).collect();
        println!(
            "{name:<20} {:>11.2} {:>9.2} {:>12.2} ..{:>8.2}",
            quantile(&all, 2),
            quantile(&added, 2),
            quantile(&added, 1),
            quantile(&added, 3),
        );
    }
}

/// The value below which so many quarters of `values` lie.
fn quantile(values: &[f64], quarters: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * quarters / 4).copied().unwrap_or(0.0)
}

/// Nanoseconds as microseconds, for print.
fn micros(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e6
}

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}
