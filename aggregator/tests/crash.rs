//! SIGKILL, again and again, under load: what was acknowledged is counted, and
//! counted once.
//!
//! Several sources flush without a pause and send each message again until it
//! is acknowledged, while the service is killed at random moments and started
//! again on the same data. At the end every message has been acknowledged, so
//! the books must hold exactly what was sent. The seed is printed first;
//! `WEIR_CRASH_SEED` repeats it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking, and shares its helpers"
)]

mod common;

use std::{sync::Arc, thread};

use common::{
    client::metric,
    killed::Region,
    messages::RULES,
    random::Random,
    source::{Source, assert_held, join},
};

const ROUNDS: u64 = 24;
const SOURCES: u64 = 4;

#[test]
fn every_acknowledged_flush_is_counted_exactly_once_however_often_the_service_is_killed() {
    let seed = std::env::var("WEIR_CRASH_SEED").map_or(20_261, |seed| seed.parse().unwrap());
    println!("WEIR_CRASH_SEED={seed}");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rules.yaml"), RULES).unwrap();
    let region = Arc::new(Region::default());
    let sources: Vec<_> = (0..SOURCES)
        .map(|source| {
            let region = Arc::clone(&region);
            thread::spawn(move || Source::new(seed, source).run(&*region))
        })
        .collect();
    region.kill_again_and_again(ROUNDS, dir.path(), &mut Random::new(seed));
    let (mut child, address) = region.start_and_close(dir.path());
    let books = join(sources);
    let sent: u64 = books.values().sum();
    assert!(sent > 10_000, "too little happened to tell anything");
    let hits = |label: &str| metric(address, "weir_hits_total", label);
    assert_held(&[address], &books, hits);
    child.kill().unwrap();
    child.wait().unwrap();
}
