//! What the filter costs Envoy: processor time added to a request, over no
//! filter, beside a filter that does nothing and Envoy's own local limiter.
//!
//! All Envoys run at once and are loaded in turn, round after round, so that a
//! busy machine is busy for all of them alike; the median round counts. Envoy
//! answers the requests itself. Behind the filter stands the real Ledger, in the
//! bench's own process, so that leases are granted and renewed as they are in
//! service; what a flush costs the filter is in its figures. The least of all rounds
//! is shown, too: it is what a machine that is busy with other things has disturbed
//! the least.
//!
//! `WEIR_COST_MODULES=name=path,...` adds modules, each with few headers to count
//! per; `WEIR_COST_ONLY=few,before` leaves out all but the first and those with such
//! a word in their names; `WEIR_COST_ROUNDS` and `WEIR_COST_REQUESTS` (a round, per
//! Envoy) change the effort.

#![expect(
    clippy::expect_used,
    reason = "a bench that cannot measure ends at once"
)]

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use limiter::rule::{Condition, KeyPart, Rule, StatusMatch};
use weir_tests::binaries;
use weir_tests::envoy::{Envoy, weir_filter};
use weir_tests::envoy_config::{Filter, Setup};
use weir_tests::http;
use weir_tests::measure::{machine, number, percentile};
use weir_tests::region::Region;
use weir_tests::rules::{per_address, per_header, per_window};
use weir_tests::wait::wait_until;

/// Far more than is sent.
const LIMIT: u64 = 1_000_000_000_000;

/// Connections that one Envoy is loaded over.
const CONNECTIONS: u64 = 4;

/// Keys that each connection goes through, one after the other: most requests
/// of a round meet a key that is not in the processor's caches, and every flush
/// is full.
const KEYS: u64 = 2_500;

/// As many where all keys stay leased from flush to flush.
const KEYS_FEW: u64 = 25;

struct Candidate {
    name: String,
    keys: u64,
    status: u16,
    envoy: Envoy,
    region: Option<Region>,
    /// Time spent a request, one value a round, in nanoseconds.
    costs: Vec<u64>,
    /// Messages to the region for a thousand requests, one value a round.
    calls: Vec<f64>,
}

fn main() {
    let rounds = number("WEIR_COST_ROUNDS", 15);
    let requests = number("WEIR_COST_REQUESTS", 20_000);
    let mut candidates = candidates();
    for candidate in &mut candidates {
        // The first of each key is allowed by every rule.
        drive_all(candidate, CONNECTIONS * candidate.keys, false);
    }
    for _ in 0..rounds {
        for candidate in &mut candidates {
            candidate.round(requests);
        }
    }
    report(&candidates);
}

fn candidates() -> Vec<Candidate> {
    let only = env::var("WEIR_COST_ONLY").unwrap_or_default();
    let wanted = |name: &str| only.split(',').any(|word| name.contains(word));
    let mut makers = makers();
    let first = makers.remove(0);
    let rest = makers.into_iter().filter(|(name, _)| wanted(name));
    let each = std::iter::once(first).chain(rest);
    each.map(|(name, make)| make(&name)).collect()
}

type Maker = Box<dyn FnOnce(&str) -> Candidate>;

/// What is measured, by name; the first is what all others are compared with.
fn makers() -> Vec<(String, Maker)> {
    let wasm = |module: PathBuf| Filter::Wasm {
        module,
        config: String::new(),
        capabilities: Vec::new(),
    };
    let per_key = || vec![per_header("a", "x-api-key", LIMIT, 3_600)];
    let few = |candidate| Candidate {
        keys: KEYS_FEW,
        ..candidate
    };
    let mut makers: Vec<(String, Maker)> = Vec::new();
    let mut add = |name: &str, make: Maker| makers.push((name.to_owned(), make));
    add("no filter", Box::new(|name| plain(name, Filter::Bare)));
    add(
        "local_ratelimit",
        Box::new(|name| plain(name, Filter::LocalRateLimit)),
    );
    add(
        "no-op wasm",
        Box::new(move |name| plain(name, wasm(binaries::noop_wasm()))),
    );
    add("weir, no rules", Box::new(|name| ruled(name, Vec::new())));
    add(
        "weir, per header",
        Box::new(move |name| ruled(name, per_key())),
    );
    add(
        "weir, few headers",
        Box::new(move |name| few(ruled(name, per_key()))),
    );
    add(
        "weir, few, refunds",
        Box::new(move |name| few(ruled(name, refunded()))),
    );
    add(
        "weir, per address",
        Box::new(|name| ruled(name, vec![per_address("a", LIMIT, 3_600)])),
    );
    add(
        "weir, four rules",
        Box::new(|name| ruled(name, four_rules())),
    );
    add(
        "weir, denied",
        Box::new(move |name| Candidate {
            status: 429,
            ..few(ruled(name, vec![per_header("a", "x-api-key", 1, 3_600)]))
        }),
    );
    let more = env::var("WEIR_COST_MODULES").unwrap_or_default();
    for (name, path) in more.split(',').filter_map(|pair| pair.split_once('=')) {
        let module = PathBuf::from(path);
        add(
            name,
            Box::new(move |name| few(ruled_by(name, wasm(module), per_key()))),
        );
    }
    makers
}

/// Per header, and given back if the service fails, which it never does.
fn refunded() -> Vec<Rule> {
    let mut rule = per_header("a", "x-api-key", LIMIT, 3_600);
    rule.refund = vec![StatusMatch::Class(5)];
    vec![rule]
}

fn plain(name: &str, filter: Filter) -> Candidate {
    let envoy = Envoy::start(Setup::new(filter));
    Candidate {
        name: name.to_owned(),
        keys: KEYS,
        status: 200,
        envoy,
        region: None,
        costs: Vec::new(),
        calls: Vec::new(),
    }
}

/// The filter with these rules, none of which denies.
fn ruled(name: &str, rules: Vec<Rule>) -> Candidate {
    ruled_by(name, weir_filter(""), rules)
}

/// The same by this module.
fn ruled_by(name: &str, filter: Filter, rules: Vec<Rule>) -> Candidate {
    let region = Region::start(rules);
    let envoy = Envoy::start(Setup::new(filter).aggregator(region.address()));
    wait_until("the rules are in force", || {
        region.sources_up_to_date() == 2
    });
    Candidate {
        name: name.to_owned(),
        keys: KEYS,
        status: 200,
        envoy,
        region: Some(region),
        costs: Vec::new(),
        calls: Vec::new(),
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

impl Candidate {
    /// Traffic that has been going for a while when it is measured, so that
    /// leases are what they are in service.
    fn round(&mut self, requests: u64) {
        drive_all(self, requests / 2, true);
        let calls = |region: &Region| region.call_count();
        let called = self.region.as_ref().map_or(0, calls);
        let before = self.envoy.process().cpu_time();
        drive_all(self, requests, true);
        let spent = self.envoy.process().cpu_time().saturating_sub(before);
        let called = self.region.as_ref().map_or(0, calls) - called;
        let nanos = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        self.costs.push(nanos / requests.max(1));
        self.calls.push(called as f64 * 1e3 / requests as f64);
    }
}

/// Sends requests over all connections at once.
fn drive_all(candidate: &Candidate, requests: u64, strict: bool) {
    let address = candidate.envoy.address();
    let (keys, status) = (candidate.keys, strict.then_some(candidate.status));
    thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            scope.spawn(move || {
                drive(address, connection, keys, requests / CONNECTIONS, status);
            });
        }
    });
}

fn drive(address: SocketAddr, connection: u64, keys: u64, requests: u64, status: Option<u16>) {
    let mut stream = http::Connection::open(address).expect("Envoy takes connections");
    for n in 0..requests {
        let key = format!("key-{connection}-{}", n % keys);
        let headers = [
            ("user-agent", "envoy-cost/1"),
            ("accept", "*/*"),
            ("x-api-key", key.as_str()),
        ];
        let answer = stream
            .send(&http::get("/v1/things?id=7", &headers))
            .expect("Envoy answers");
        assert!(
            status.is_none_or(|status| status == answer.status),
            "{answer:?}"
        );
    }
}

fn report(candidates: &[Candidate]) {
    let bare = candidates.first().map_or(&[][..], |c| &c.costs);
    println!("{}", machine());
    println!(
        "{:<20} {:>11} {:>9} {:>9} {:>22} {:>12}",
        "filter", "us/request", "least us", "added us", "added, quartiles", "calls/1000"
    );
    for Candidate {
        name, costs, calls, ..
    } in candidates
    {
        let added: Vec<f64> = costs
            .iter()
            .zip(bare)
            .map(|(&cost, &bare)| micros(cost) - micros(bare))
            .collect();
        let all: Vec<f64> = costs.iter().map(|&cost| micros(cost)).collect();
        println!(
            "{name:<20} {:>11.2} {:>9.2} {:>9.2} {:>12.2} ..{:>8.2} {:>12.1}",
            percentile(&all, 500),
            percentile(&all, 0),
            percentile(&added, 500),
            percentile(&added, 250),
            percentile(&added, 750),
            percentile(calls, 500),
        );
    }
}

/// Nanoseconds as microseconds, for print.
fn micros(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e6
}
