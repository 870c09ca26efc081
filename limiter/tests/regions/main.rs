//! Limits over several regions: three of them, each with five sources, and answers from
//! above that take 150 ms.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    unreachable_pub,
    reason = "a test may stop at the first surprise"
)]

#[path = "../common/mod.rs"]
mod common;
mod world;

use limiter::{quota::Algorithm, rule::Scope};

use common::{rule, rules};
use world::{World, offer};

const FIXED: Algorithm = Algorithm::FixedWindow;
const SLIDING: Algorithm = Algorithm::SlidingWindow;
const BUCKET: Algorithm = Algorithm::TokenBucket;

fn world(limit: u64, window_ms: u64, algorithm: Algorithm) -> World {
    let mut rule = rule(limit, window_ms, algorithm);
    rule.scope = Scope::Global;
    let mut world = World::new(&rules(1, vec![rule]), 3, 5, 150);
    world.run(4_000);
    world
}

/// Millionths of requests a millisecond: `load` percent of the limit, by these parts.
fn rates(limit: u64, window_ms: u64, load: u64, parts: [u64; 3]) -> [u64; 3] {
    let all = limit * 1_000_000 * load / 100 / window_ms;
    let sum: u64 = parts.iter().sum();
    parts.map(|part| all * part / sum)
}

#[test]
fn look() {
    let shapes = [
        (1_000, 60_000, SLIDING),
        (100, 60_000, SLIDING),
        (10_000, 60_000, SLIDING),
        (100, 10_000, SLIDING),
    ];
    for (limit, window, algorithm) in shapes {
        for load in [80, 100, 1_000] {
            for parts in [[1, 1, 1], [8, 1, 1]] {
                let mut world = world(limit, window, algorithm);
                let len = if window <= 10_000 { 60 } else { 300 };
                offer(&mut world, &rates(limit, window, load, parts), "k", len);
                let denied: u64 = world.places.iter().map(|place| place.denied).sum();
                println!(
                    "{limit}/{window} {algorithm:?} load {load} {parts:?}: {:+.2} % ({} of {}, {denied} denied)",
                    world.error_percent(),
                    world.admitted(),
                    world.exactly,
                );
            }
        }
    }
}

#[test]
fn watch() {
    let mut world = world(10_000, 60_000, SLIDING);
    let key = common::counter(&world.rules, "k");
    for second in 0..300 {
        offer(
            &mut world,
            &rates(10_000, 60_000, 100, [1, 1, 1]),
            "k",
            1,
        );
        let now = world.now;
        let audit = world.global.ledger.audit(0, key, now).unwrap();
        let below: Vec<_> = world
            .places
            .iter()
            .map(|place| {
                let audit = place.region.ledger.audit(0, key, now).unwrap();
                (place.admitted, audit.lent_micro / 1000)
            })
            .collect();
        println!(
            "{second} global room {} lent {} {below:?} {}",
            audit.room_micro / 1000,
            audit.lent_micro / 1000,
            world.exactly
        );
    }
}
