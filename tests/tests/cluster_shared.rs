//! A region of several aggregators that share a store, beside one of a single aggregator,
//! both under a global one: members are killed, and the global books hold what the
//! sources were acknowledged.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that fails may panic"
)]

use weir_tests::aggregator::Aggregator;
use weir_tests::light::{Light, Traffic, sums};
use weir_tests::redis_server::Redis;
use weir_tests::site::{acknowledged, books};
use weir_tests::wait::wait_until;

/// A global limit that is soon spent, a global one that never is, and one of each region.
const RULES: &str = "version: 1
domain: api.example.com
rules:
  - { name: scarce, key: header.x-api-key, limit: 300, window: 1d, algorithm: fixed_window, scope: global }
  - { name: ample, key: header.x-api-key, limit: 1000000, window: 1d, scope: global }
  - { name: here, key: header.x-api-key, limit: 1000000, window: 1d }
";

/// Keys, each with a limit of its own.
const KEYS: [&str; 2] = ["a", "b"];
const LIMIT: u64 = 300;

/// One of the regions' aggregators; with a store, one of several.
fn below(global: &Aggregator, region: &str, store: Option<&Redis>) -> Aggregator {
    let upstream = format!("http://{}", global.address());
    let store = store.map(|store| format!("redis://{}?lease_ms=1000", store.address()));
    let mut options = vec!["--upstream", &upstream, "--region", region];
    if let Some(store) = &store {
        options.extend(["--store", store]);
    }
    let mut aggregator = Aggregator::prepare(&options);
    aggregator.restart();
    aggregator
}

fn source(aggregator: &Aggregator) -> Light {
    let traffic = Traffic {
        keys: KEYS.map(str::to_owned).to_vec(),
        per_second: 40,
    };
    Light::start(aggregator.address(), traffic)
}

#[test]
fn what_any_member_counted_is_in_the_global_books_once_though_members_are_killed() {
    let store = Redis::valkey("always");
    let global = Aggregator::start_with(RULES, &["--region", "global"]);
    let mut members: Vec<_> = (0..3).map(|_| below(&global, "eu", Some(&store))).collect();
    let single = below(&global, "us", None);
    let sources: Vec<Light> = members.iter().chain([&single]).map(source).collect();
    wait_until("every source runs rules", || {
        sources.iter().all(|source| source.revision() > 0)
    });
    for victim in 0..2 {
        let before = sums(&sources).acknowledged;
        wait_until("more is acknowledged", || {
            sums(&sources).acknowledged >= before + 300
        });
        members[victim].kill();
        sources[victim].move_to(members[victim + 1].address());
        members[victim].restart();
    }
    wait_until("the global limit is spent", || {
        let spent = KEYS.len() as u64 * LIMIT;
        let scarce = books([&global]).get("scarce").copied();
        scarce >= Some(spent - spent / 50)
    });
    sources.iter().for_each(Light::rest);
    wait_until("all that was admitted is acknowledged", || {
        let sums = sums(&sources);
        sums.admitted == sums.acknowledged
    });

    let told = acknowledged(&sources);
    let at_eu = acknowledged(&sources[..3]);
    wait_until(
        "the members of the region have all of it in their books",
        || books(&members) == at_eu,
    );
    let mut global_rules = told.clone();
    global_rules.remove("here");
    wait_until("the global books have what is global, once", || {
        let mut held = books([&global]);
        held.retain(|_, hits| *hits > 0);
        held == global_rules
    });
    let (spent, leaked) = (told["scarce"], sums(&sources).leaked);
    let most = KEYS.len() as u64 * (LIMIT + LIMIT / 50) + leaked;
    println!(
        "admitted {spent} of {}, leaked {leaked}",
        KEYS.len() as u64 * LIMIT
    );
    assert!(spent <= most, "{spent} of {most}");
}
