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

use weir_tests::binaries;
use weir_tests::envoy::{Envoy, weir_filter};
use weir_tests::envoy_config::{Filter, Setup};
use weir_tests::http;

/// Connections that one Envoy is loaded over.
const CONNECTIONS: u64 = 4;

struct Candidate {
    name: String,
    envoy: Envoy,
    /// Time spent a request, one value a round, in nanoseconds.
    costs: Vec<u64>,
}

fn main() {
    let rounds = number("WEIR_COST_ROUNDS", 7);
    let requests = number("WEIR_COST_REQUESTS", 20_000);
    let mut candidates: Vec<Candidate> = filters()
        .into_iter()
        .map(|(name, filter)| Candidate {
            name,
            envoy: Envoy::start(Setup::new(filter)),
            costs: Vec::new(),
        })
        .collect();
    for candidate in &mut candidates {
        cost(&mut candidate.envoy, requests / 4);
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

fn filters() -> Vec<(String, Filter)> {
    let wasm = |module: PathBuf| Filter::Wasm {
        module,
        config: String::new(),
        capabilities: Vec::new(),
    };
    let mut filters = vec![
        ("no filter".to_owned(), Filter::Bare),
        ("local_ratelimit".to_owned(), Filter::LocalRateLimit),
        ("no-op wasm".to_owned(), wasm(binaries::noop_wasm())),
        ("weir".to_owned(), weir_filter("")),
    ];
    let more = env::var("WEIR_COST_MODULES").unwrap_or_default();
    filters.extend(
        more.split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, path)| (name.to_owned(), wasm(path.into()))),
    );
    filters
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
    let key = format!("key-{connection}");
    let request = http::get(
        "/v1/things?id=7",
        &[
            ("user-agent", "envoy-cost/1"),
            ("accept", "*/*"),
            ("x-api-key", &key),
        ],
    );
    let mut connection = http::Connection::open(address).expect("Envoy takes connections");
    for _ in 0..requests {
        let answer = connection.send(&request).expect("Envoy answers");
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
