//! What one decision costs in the process itself, on keys that are leased, beside
//! the crate `governor`.
//!
//! 100 000 keys in random order, where most of the time goes into fetching a key's
//! state from memory, and then 1 000, which the processor's caches hold. All candidates go through the same keys in turn,
//! round after round; the median round counts. Weir is given the time, governor
//! reads a clock (its default one, `quanta`): two rows say what it costs without.
//!
//! `WEIR_DECIDE_ROUNDS` and `WEIR_DECIDE_KEYS` change the effort.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "it measures how long something takes, on keys it made itself"
)]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};
use limiter::decision::{Tier, Verdict};
use limiter::rule::Rule;
use limiter::time::{Micros, Timestamp};
use weir_tests::counting::{Counting, allocations};
use weir_tests::measure::{machine, number, percentile, spread};
use weir_tests::rules::per_header;
use weir_tests::warm::{HEADER, Keyed, Warm};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Decisions of one candidate in one round.
const DECISIONS: usize = 200_000;

/// Decides once for the key at each of these places; how many were allowed.
type Decide<'a> = Box<dyn FnMut(&[u32]) -> usize + 'a>;

struct Candidate<'a> {
    name: &'static str,
    decide: Decide<'a>,
    nanos: Vec<f64>,
    allocations: u64,
    allowed: usize,
}

fn main() {
    let rounds = number("WEIR_DECIDE_ROUNDS", 15);
    for keys in [
        number("WEIR_DECIDE_KEYS", 100_000),
        number("WEIR_DECIDE_KEYS_FEW", 1_000),
    ] {
        compare(usize::try_from(keys.max(1)).unwrap_or(1), rounds);
    }
}

fn compare(keys: usize, rounds: u64) {
    // Twice what the rounds come to, for the keys that chance prefers.
    let hits = (rounds + 2) * (2 * DECISIONS / keys + 20) as u64;
    let warm =
        |rules: &[&str]| Warm::new(rules.iter().map(|name| rule(name)).collect(), keys, hits);
    let (mut one, mut two, mut resolved) = (warm(&["a"]), warm(&["a"]), warm(&["a"]));
    let mut four = warm(&["a", "b", "c", "d"]);
    let mut candidates = vec![
        candidate("nothing but the loop", |places| {
            places.iter().filter(|place| **place < u32::MAX).count()
        }),
        candidate("weir: decide", |places| decide(&mut one, places)),
        candidate("weir: decide, reading the clock", |places| {
            decide_timed(&mut two, places)
        }),
        candidate("weir: resolve a header + decide", |places| {
            resolve(&mut resolved, places)
        }),
        candidate("weir: decide, four rules", |places| {
            decide(&mut four, places)
        }),
    ];
    candidates.extend(governors(keys));
    measure(&mut candidates, rounds, keys);
    report(&candidates, keys);
}

/// A rule that no round exhausts.
fn rule(name: &str) -> Rule {
    per_header(name, HEADER, 1_000_000_000_000, 3_600)
}

fn candidate<'a>(name: &'static str, decide: impl FnMut(&[u32]) -> usize + 'a) -> Candidate<'a> {
    Candidate {
        name,
        decide: Box::new(decide),
        nanos: Vec::new(),
        allocations: 0,
        allowed: 0,
    }
}

fn decide(warm: &mut Warm, places: &[u32]) -> usize {
    let mut query = warm.query();
    let lent = places.iter().filter(|place| {
        warm.now = warm.now.after(Micros::new(1));
        warm.aim(&mut query, **place as usize);
        is_lent(&warm.limiter.decide(black_box(&query), warm.now))
    });
    lent.count()
}

/// As a host does that has to ask for the time.
fn decide_timed(warm: &mut Warm, places: &[u32]) -> usize {
    let mut query = warm.query();
    // The leases are of another time: the clock's steps are added to theirs.
    let (began, at) = (clock(), warm.now);
    let lent = places.iter().filter(|place| {
        let now = at.after(clock().since(began));
        warm.aim(&mut query, **place as usize);
        is_lent(&warm.limiter.decide(black_box(&query), now))
    });
    let count = lent.count();
    warm.now = at.after(clock().since(began));
    count
}

fn resolve(warm: &mut Warm, places: &[u32]) -> usize {
    let Warm {
        limiter, keys, now, ..
    } = warm;
    let lent = places.iter().filter(|place| {
        *now = now.after(Micros::new(1));
        let request = Keyed(black_box(&keys[**place as usize]));
        let query = limiter.rules().resolve(&request);
        is_lent(&limiter.decide(&query, *now))
    });
    lent.count()
}

fn is_lent(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Allow(decision) if decision.tier == Tier::Lease)
}

fn clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

fn governors<'a>(count: usize) -> Vec<Candidate<'a>> {
    let quota = Quota::per_second(NonZeroU32::MAX);
    let numbers: Vec<u64> = (0..count as u64).collect();
    let texts: Vec<String> = (0..count).map(|n| format!("customer-{n:07}")).collect();
    let by_number = RateLimiter::keyed(quota);
    let by_text = RateLimiter::keyed(quota);
    let untimed_number = RateLimiter::dashmap_with_clock(quota, FakeRelativeClock::default());
    let untimed_text = RateLimiter::dashmap_with_clock(quota, FakeRelativeClock::default());
    let (more_numbers, more_texts) = (numbers.clone(), texts.clone());
    vec![
        candidate("governor: u64 keys", move |places| {
            let keys = places.iter().map(|place| &numbers[*place as usize]);
            keys.filter(|key| by_number.check_key(black_box(*key)).is_ok())
                .count()
        }),
        candidate("governor: String keys", move |places| {
            let keys = places.iter().map(|place| &texts[*place as usize]);
            keys.filter(|key| by_text.check_key(black_box(*key)).is_ok())
                .count()
        }),
        candidate("governor: u64 keys, no clock", move |places| {
            let keys = places.iter().map(|place| &more_numbers[*place as usize]);
            keys.filter(|key| untimed_number.check_key(black_box(*key)).is_ok())
                .count()
        }),
        candidate("governor: String keys, no clock", move |places| {
            let keys = places.iter().map(|place| &more_texts[*place as usize]);
            keys.filter(|key| untimed_text.check_key(black_box(*key)).is_ok())
                .count()
        }),
    ]
}

fn measure(candidates: &mut [Candidate<'_>], rounds: u64, keys: usize) {
    // Each key once: what is made when a key first comes is not counted.
    let all: Vec<u32> = (0..u32::try_from(keys).unwrap_or(u32::MAX)).collect();
    for candidate in &mut *candidates {
        (candidate.decide)(&all);
    }
    let mut chance = oorandom::Rand32::new(7);
    for _ in 0..rounds {
        let places: Vec<u32> = (0..DECISIONS)
            .map(|_| chance.rand_range(0..u32::try_from(keys).unwrap_or(u32::MAX)))
            .collect();
        for candidate in &mut *candidates {
            let (began, before) = (Instant::now(), allocations());
            candidate.allowed += (candidate.decide)(black_box(&places));
            let took = began.elapsed();
            candidate.allocations += allocations() - before;
            let nanos = took.as_secs_f64() * 1e9 / DECISIONS as f64;
            candidate.nanos.push(nanos);
        }
    }
}

fn report(candidates: &[Candidate<'_>], keys: usize) {
    println!("\n{keys} keys in random order; {}", machine());
    println!(
        "{:<34} {:>26} {:>9} {:>12} {:>9}",
        "", "ns a call: median (range)", "quartile", "allocations", "allowed"
    );
    for candidate in candidates {
        let decided = candidate.nanos.len() * DECISIONS;
        println!(
            "{:<34} {:>26} {:>9.1} {:>12} {:>8.2}%",
            candidate.name,
            spread(&candidate.nanos),
            percentile(&candidate.nanos, 250),
            candidate.allocations,
            candidate.allowed as f64 * 100.0 / decided as f64,
        );
    }
}
