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

use limiter::{decision::Verdict, ledger::Region, quota::Algorithm, rule::Scope};

use common::{rule, rules};
use world::{World, offer, step};

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

/// A run of a minute limit of a thousand.
fn run(algorithm: Algorithm, load: u64, parts: [u64; 3]) -> World {
    let mut world = world(1_000, 60_000, algorithm);
    offer(&mut world, &rates(1_000, 60_000, load, parts), "k", 300);
    world
}

#[test]
fn a_flood_in_all_regions_is_held_to_the_limit() {
    for algorithm in [SLIDING, BUCKET] {
        for parts in [[1, 1, 1], [8, 1, 1]] {
            let error = run(algorithm, 1_000, parts).error_percent();
            assert!(error.abs() < 2.0, "{algorithm:?} {parts:?}: {error:+.2} %");
        }
    }
}

#[test]
fn a_fixed_window_admits_its_limit_over_all_regions_and_not_one_more() {
    for (limit, window_s) in [(1_000, 60), (500, 10)] {
        let mut world = world(limit, window_s * 1_000, FIXED);
        let rates = rates(limit, window_s * 1_000, 1_000, [8, 1, 1]);
        offer(&mut world, &rates, "k", window_s - 4);
        for _ in 0..5 {
            let before = world.admitted();
            offer(&mut world, &rates, "k", window_s);
            assert_eq!(world.admitted() - before, limit);
        }
    }
}

#[test]
fn at_the_limit_few_are_turned_away_that_one_exact_limiter_would_admit() {
    for algorithm in [SLIDING, FIXED, BUCKET] {
        for parts in [[1, 1, 1], [8, 1, 1]] {
            let error = run(algorithm, 100, parts).error_percent();
            assert!(error.abs() < 2.0, "{algorithm:?} {parts:?}: {error:+.2} %");
        }
    }
}

#[test]
fn where_the_limit_is_not_reached_nobody_is_turned_away() {
    for algorithm in [SLIDING, FIXED, BUCKET] {
        for parts in [[1, 1, 1], [8, 1, 1]] {
            let error = run(algorithm, 80, parts).error_percent();
            assert!(error > -1.0, "{algorithm:?} {parts:?}: {error:+.2} %");
        }
    }
}

#[test]
fn a_window_that_is_over_before_an_answer_is_held_on_the_average_and_never_admits_two() {
    for (limit, window_ms, algorithm) in [(1_000, 1_000, SLIDING), (20, 100, FIXED)] {
        for parts in [[1, 1, 1], [8, 1, 1]] {
            let mut world = world(limit, window_ms, algorithm);
            let rates = rates(limit, window_ms, 1_000, parts);
            for _ in 0..60_000 / window_ms {
                let before = world.admitted();
                for _ in 0..window_ms {
                    step(&mut world, &rates, "k");
                }
                let window = world.admitted() - before;
                assert!(window <= 2 * limit, "{window_ms} ms {parts:?}: {window}");
            }
            let error = world.error_percent();
            assert!(error.abs() < 2.0, "{window_ms} ms {parts:?}: {error:+.2} %");
        }
    }
}

#[test]
fn what_regions_have_acknowledged_is_counted_above_once_whatever_ends_or_is_cut() {
    let mut world = world(1_000, 60_000, SLIDING);
    let rates = rates(1_000, 60_000, 300, [3, 2, 1]);
    for round in 0..40_usize {
        let now = world.now;
        let place = &mut world.places[round % 3];
        match round % 4 {
            0 => place.restart(false, now),
            1 => place.cut = true,
            2 => place.restart(true, now),
            _ => world.places.iter_mut().for_each(|place| place.cut = false),
        }
        offer(&mut world, &rates, "k", 1);
    }
    world.drain();
    let below: u64 = world.places.iter().map(|place| place.region.hits()).sum();
    assert!(below > 500, "{below}");
    assert_eq!(below, world.admitted());
    assert_eq!(below, world.global.hits());
}

#[test]
fn a_region_that_is_cut_off_goes_on_with_its_share_and_is_told_apart() {
    let mut world = world(1_000, 60_000, SLIDING);
    let rates = rates(1_000, 60_000, 1_000, [1, 1, 1]);
    offer(&mut world, &rates, "k", 120);
    world.places[0].cut = true;
    offer(&mut world, &rates, "k", 5);
    let (before, alone) = (world.places[0].admitted, &world.places[0].region.ledger);
    let stats = alone.upstream_stats(world.now).unwrap();
    assert!(stats.away && stats.waiting > 0, "{stats:?}");
    offer(&mut world, &rates, "k", 60);
    let cut_off = world.places[0].admitted - before;
    let stats = world.places[0].region.ledger.upstream_stats(world.now);
    assert!(stats.unwrap().alone_hits >= cut_off, "{stats:?}");
    assert!(
        (200..=450).contains(&cut_off),
        "{cut_off} of a third of 1000"
    );
    world.drain();
    let leaked = world.global.ledger.leaked_by_rule();
    let leaked: u64 = leaked.iter().map(|(_, hits)| hits).sum();
    assert!(leaked >= cut_off, "{leaked}");
    assert_eq!(world.global.hits(), world.admitted());
}

#[test]
fn a_region_that_starts_cut_off_keeps_to_its_part_of_what_it_knew_in_an_earlier_life() {
    let mut rule = rule(100, 60_000, FIXED);
    rule.scope = Scope::Global;
    let rules = rules(1, vec![rule]);
    let admitted = |regions: Option<u32>| {
        let mut region = common::Region::new(&rules, common::SEEDS);
        let (ledger, log) = (&mut region.ledger, &mut region.log);
        let name = "eu".to_owned();
        ledger.join(Region { name, epoch: 1 }, common::at(0), log);
        if let Some(regions) = regions {
            ledger.expect_regions(regions);
        }
        let query = common::query(&rules, "k");
        let allowed = |_: &u64| {
            let verdict = ledger.check(&query, common::at(1), log);
            matches!(verdict, Verdict::Allow(_))
        };
        (0..200).filter(allowed).count()
    };
    // A quarter, rounded down.
    assert!((24..=25).contains(&admitted(Some(4))));
    assert_eq!([admitted(Some(1)), admitted(None)], [100, 100]);
}

#[test]
fn rules_set_above_are_in_force_at_every_source_within_two_seconds() {
    let mut world = world(1_000, 60_000, SLIDING);
    let mut rule = rule(10, 60_000, SLIDING);
    rule.scope = Scope::Global;
    let now = world.now;
    let global = &mut world.global;
    global
        .ledger
        .set_rules(rules(2, vec![rule]), now, &mut global.log);
    world.run(2_000);
    for place in &world.places {
        for source in &place.sources {
            assert_eq!(source.rules().revision, 2);
        }
    }
}
