//! What a check costs through the component, beside the same limiter called natively:
//! one counter by its name, a request in words, and a batch of 64.
//!
//! All run in turn, round after round, over the same keys in the same order, so that a
//! busy machine is busy for all of them alike; the median round counts, in processor
//! time of this thread. Nothing is ever denied, and there is no region: messages and what
//! a host does with answers are not in it. `WEIR_COMPONENT_ROUNDS` changes the effort.

#![expect(
    clippy::expect_used,
    reason = "a bench that cannot measure ends at once"
)]

use std::hint::black_box;
use std::sync::Arc;

use limiter::edge::{Identity, Limiter, Settings};
use limiter::request::{Hit, Query};
use limiter::rule::{Attribute, Rule};
use limiter::ruleset::RuleSet;
use limiter::time::{Micros, Timestamp};
use wasmtime::Engine;
use wasmtime::component::Component;
use weir_component::rules::{HEADER, alone, compiled, set};
use weir_component::{Attempt, Counter, Instance, KeyCheck, Request, START_US, request, settings};
use weir_tests::binaries;
use weir_tests::measure::{machine, number, spread, thread_time};

const KEYS: usize = 1_000;
const BATCH: usize = 64;

/// Checks a round of one candidate.
const CHECKS: usize = 64_000;

struct Candidate {
    name: &'static str,
    /// Checks so many times from this key on.
    run: Box<dyn FnMut(usize)>,
    ns: Vec<f64>,
}

fn main() {
    let rounds = number("WEIR_COMPONENT_ROUNDS", 15);
    let rules = rules();
    let mut candidates = [native(&rules), component(&rules)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    for round in 0..=rounds {
        for candidate in &mut candidates {
            let before = thread_time();
            (candidate.run)(CHECKS);
            let spent = thread_time().saturating_sub(before).as_secs_f64();
            // The first round warms the keys up.
            if round > 0 {
                candidate.ns.push(spent * 1e9 / CHECKS as f64);
            }
        }
    }
    println!("{KEYS} keys in turn; {}", machine());
    println!("{:<48}{:>32}", "", "ns a check: median (range)");
    for candidate in &candidates {
        println!("{:<48}{:>32}", candidate.name, spread(&candidate.ns));
    }
}

/// One rule for each instance on its own, with a limit that nobody reaches.
fn rules() -> Arc<RuleSet> {
    let rule: Rule = alone(1_000_000_000_000);
    Arc::new(set(1, vec![rule]))
}

/// As a browser sends them: what the rule counts per is the last.
fn requests() -> Vec<Request> {
    let with = |key: usize| {
        let mut asked = request("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
        for (name, value) in [
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
            ("accept-language", "en"),
        ] {
            asked
                .headers
                .push((name.to_owned(), value.as_bytes().to_vec()));
        }
        asked
            .headers
            .push((HEADER.to_owned(), format!("key-{key}").into_bytes()));
        asked
    };
    (0..KEYS).map(with).collect()
}

/// The same to the limiter itself.
struct Native<'a>(&'a Request);

impl limiter::request::Request for Native<'_> {
    fn method(&self) -> &[u8] {
        &self.0.method
    }

    fn host(&self) -> &[u8] {
        &self.0.host
    }

    fn path(&self) -> &[u8] {
        &self.0.path
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let found = self.0.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    fn address(&self) -> Option<std::net::IpAddr> {
        None
    }

    fn attribute(&self, _: &Attribute) -> Option<&[u8]> {
        None
    }
}

fn limiter_with(rules: &Arc<RuleSet>) -> Limiter {
    let identity = Identity {
        source: 1,
        epoch: START_US,
        pop: String::new(),
    };
    let settings = Settings {
        keys_max: 100_000,
        flush_interval: Micros::from_secs(1),
        hash_seeds: [1, 2, 3, 4],
    };
    let mut limiter = Limiter::new(identity, settings);
    limiter.set_rules(Arc::clone(rules));
    limiter
}

fn candidate(name: &'static str, mut check: impl FnMut(usize) + 'static) -> Candidate {
    let run = Box::new(move |checks: usize| (0..checks).for_each(|n| check(n % KEYS)));
    Candidate {
        name,
        run,
        ns: Vec::new(),
    }
}

fn native(rules: &Arc<RuleSet>) -> Vec<Candidate> {
    let now = Timestamp::from_micros(START_US);
    let keys: Vec<Hit> = (0..KEYS)
        .map(|key| {
            let key = rules.key_of(0, &[format!("key-{key}").as_bytes()]);
            Hit {
                rule: 0,
                key: key.expect("a key"),
                cost: 1,
            }
        })
        .collect();
    let (mut by_key, mut by_request) = (limiter_with(rules), limiter_with(rules));
    let (same, requests, asked) = (Arc::clone(rules), requests(), Arc::clone(rules));
    vec![
        candidate("native, a counter by its name", move |key| {
            let mut query = Query {
                rules: Arc::clone(&same),
                hits: Default::default(),
            };
            query.hits.extend(keys.get(key).copied());
            black_box(by_key.decide(&query, now));
        }),
        candidate("native, a request in words", move |key| {
            let query = requests
                .get(key)
                .map(|request| asked.resolve(&Native(request)));
            black_box(query.map(|query| by_request.decide(&query, now)));
        }),
    ]
}

/// An instance of its own, compiled as a host would.
fn instance(rules: &RuleSet) -> Instance {
    let engine = Engine::default();
    let component = Component::from_file(&engine, binaries::limiter_component());
    let mut instance = Instance::on(&engine, &component.expect("a component"), &settings(1));
    instance
        .set_rules(&compiled(rules))
        .expect("rules that are taken");
    instance
}

fn component(rules: &RuleSet) -> Vec<Candidate> {
    let (mut nothing, mut by_key, mut by_request, mut batch) = (
        instance(rules),
        instance(rules),
        instance(rules),
        instance(rules),
    );
    let named = |key| {
        by_key
            .counter_of("per-key", &[&format!("key-{key}")])
            .expect("a counter")
    };
    let counters: Vec<Counter> = (0..KEYS).map(named).collect();
    let checks: Vec<KeyCheck> = counters
        .iter()
        .map(|counter| KeyCheck {
            counter: *counter,
            cost: 1,
        })
        .collect();
    let requests = requests();
    vec![
        candidate("component, a call that does nothing", move |_| {
            black_box(nothing.call(|source, store| source.call_revision(store)));
        }),
        candidate("component, a counter by its name (check-key)", move |key| {
            if let Some(counter) = counters.get(key) {
                black_box(by_key.check_key(*counter, 1, Attempt::First, START_US));
            }
        }),
        candidate("component, a request in words (check)", move |key| {
            if let Some(request) = requests.get(key) {
                black_box(by_request.check(request, Attempt::First, START_US));
            }
        }),
        Candidate {
            name: "component, 64 counters in one call (check-batch)",
            run: Box::new(move |times| {
                for from in (0..times).step_by(BATCH).map(|from| from % (KEYS - BATCH)) {
                    let some = checks.get(from..from + BATCH).unwrap_or_default();
                    black_box(batch.call(|source, store| {
                        source.call_check_batch(store, some, Attempt::First, START_US)
                    }));
                }
            }),
            ns: Vec::new(),
        },
    ]
}
