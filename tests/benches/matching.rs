//! What it costs to find the rules that apply to a request, of a few rules and of ten
//! thousand.
//!
//! Three rules apply, whatever the number: one by path, one by host, one by header.
//! The others ask for other values of the same, as rules do that are made one by one
//! for customers and routes. Beside them, rules that nothing tells apart (globs of a
//! header), which are asked one by one, and a rule with a tier whose keys stand in a
//! list: an entry of it is data, not a rule. All sizes take turns; the median round of processor
//! time counts.
//!
//! `WEIR_MATCHING_ROUNDS` changes the effort.

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;

use limiter::key::HashSeed;
use limiter::list::List;
use limiter::request::Request;
use limiter::rule::{Condition, Expect, KeyPart, Rule};
use limiter::ruleset::RuleSet;
use weir_tests::counting::{Counting, allocations};
use weir_tests::measure::{machine, number, spread, thread_time};
use weir_tests::rules::per_window;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZES: [usize; 5] = [1, 10, 100, 1_000, 10_000];

/// Keys in a list.
const LISTED: [usize; 3] = [1, 1_000, 100_000];

/// Requests in one round.
const REQUESTS: u32 = 2_000;

struct Asked;

impl Request for Asked {
    fn method(&self) -> &[u8] {
        b"POST"
    }
    fn host(&self) -> &[u8] {
        b"customer-0.example.com"
    }
    fn path(&self) -> &[u8] {
        b"/v1/resource-0/items/7?page=2"
    }
    fn header(&self, name: &str) -> Option<&[u8]> {
        (name == "x-api-key").then_some(b"key-0")
    }
    fn address(&self) -> Option<IpAddr> {
        None
    }
}

struct Candidate {
    name: String,
    rules: Arc<RuleSet>,
    applying: usize,
    nanos: Vec<f64>,
    allocations: u64,
}

fn main() {
    let rounds = number("WEIR_MATCHING_ROUNDS", 41);
    let mut candidates: Vec<Candidate> = SIZES
        .iter()
        .flat_map(|size| {
            let apart = candidate(format!("{size} rules"), *size, told_apart);
            let alike = (*size <= 1_000).then(|| {
                candidate(
                    format!("{size} rules that are asked one by one"),
                    *size,
                    alike,
                )
            });
            [Some(apart), alike]
        })
        .flatten()
        .chain(LISTED.iter().map(|keys| listed(*keys)))
        .collect();
    for _ in 0..rounds {
        candidates.iter_mut().for_each(measure);
    }
    println!("{}", machine());
    println!(
        "{:<44} {:>28} {:>8} {:>12}",
        "", "ns a request: median (range)", "apply", "allocations"
    );
    for one in &candidates {
        println!(
            "{:<44} {:>28} {:>8} {:>12}",
            one.name,
            spread(&one.nanos),
            one.applying,
            one.allocations
        );
    }
}

fn candidate(name: String, size: usize, conditions: fn(usize) -> Vec<Condition>) -> Candidate {
    of(name, (0..size).map(|n| rule(n, conditions(n))).collect())
}

/// A rule with a tier of so many keys, and the rule for everybody else; the request is
/// of the tier.
fn listed(keys: usize) -> Candidate {
    let values: Vec<String> = (0..keys).map(|n| format!("key-{n}")).collect();
    let values = values.iter().map(String::as_bytes);
    let list = Arc::new(List::of_values("vips", HashSeed::default(), values));
    let of_tier = || Condition::KeyIn(Arc::clone(&list));
    let rules = [
        vec![of_tier()],
        vec![Condition::None(vec![vec![of_tier()]])],
    ];
    let rules = rules.into_iter().enumerate().map(|(n, conditions)| {
        let mut rule = rule(n, conditions);
        rule.key = vec![KeyPart::Header("x-api-key".to_owned())];
        rule
    });
    of(
        format!("a tier of {keys} keys, told by a list"),
        rules.collect(),
    )
}

fn of(name: String, rules: Vec<Rule>) -> Candidate {
    let rules = RuleSet::new("bench", 1, Vec::new(), HashSeed::default(), rules);
    let rules = Arc::new(rules.unwrap_or_else(|_| RuleSet::empty()));
    let applying = rules.resolve(&Asked).hits.len();
    Candidate {
        name,
        rules,
        applying,
        nanos: Vec::new(),
        allocations: 0,
    }
}

fn rule(n: usize, conditions: Vec<Condition>) -> Rule {
    let mut rule = per_window(&format!("rule-{n}"), 1, 60);
    rule.conditions = conditions;
    rule
}

fn header(expect: Expect) -> Condition {
    let name = "x-api-key".to_owned();
    Condition::Header { name, expect }
}

/// Rules 0, 1 and 2 apply.
fn told_apart(n: usize) -> Vec<Condition> {
    let which = n / 3;
    match n % 3 {
        0 => vec![Condition::Path(vec![format!("/v1/resource-{which}/**")])],
        1 => vec![
            Condition::Host(vec![format!("customer-{which}.example.com")]),
            Condition::Method(vec!["POST".to_owned()]),
        ],
        _ => vec![header(Expect::OneOf(vec![format!("key-{which}")]))],
    }
}

fn alike(n: usize) -> Vec<Condition> {
    vec![header(Expect::Like(vec![format!("*key-{n}")]))]
}

fn measure(candidate: &mut Candidate) {
    let (before, began) = (allocations(), thread_time());
    for _ in 0..REQUESTS {
        black_box(candidate.rules.resolve(black_box(&Asked)));
    }
    let took = thread_time().saturating_sub(began);
    candidate.allocations += allocations() - before;
    let nanos = took.as_secs_f64() * 1e9;
    candidate.nanos.push(nanos / f64::from(REQUESTS));
}
