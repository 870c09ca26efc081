//! Real Envoys before three regions 150 ms from a global aggregator: one limit over all of
//! them, and rules from above.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

use std::time::Duration;

use weir_tests::cluster::{Cluster, Region};
use weir_tests::envoy::{Envoy, weir_filter};
use weir_tests::envoy_config::Setup;
use weir_tests::http::get;
use weir_tests::light::Traffic;
use weir_tests::load::{Load, Until};
use weir_tests::wait::{wait_until, wait_within};

const LIMIT: u64 = 600;

const RULES: &str = "version: 1
domain: api.example.com
rules:
  - { name: all, key: header.x-api-key, limit: 600, window: 1d, algorithm: fixed_window, scope: global }
";

/// Half of the round trip between a region and the global aggregator.
const EACH_WAY: Duration = Duration::from_millis(75);

/// Worker threads of each Envoy; its main thread has a VM, too.
const WORKERS: u32 = 2;

fn before(region: &Region) -> Envoy {
    let setup = Setup::new(weir_filter("{}")).workers(WORKERS);
    Envoy::start(setup.aggregator(region.site.aggregator.address()))
}

/// Virtual machines that have put this revision of one rule in force.
fn running(envoy: &Envoy, revision: u32) -> usize {
    let line = format!("rules in force: 1, revision {revision}");
    envoy.log().matches(&line).count()
}

#[test]
fn envoys_of_three_regions_admit_one_global_limit_and_run_its_rules() {
    const CONNECTIONS: usize = 4;
    let nobody = Traffic {
        keys: Vec::new(),
        per_second: 0,
    };
    let cluster = Cluster::start(RULES, &["eu", "us", "ap"], EACH_WAY, 0, &nobody);
    let envoys: Vec<Envoy> = cluster.regions.iter().map(before).collect();
    let vms = usize::try_from(WORKERS).expect("a few") + 1;
    let all_run = |revision| envoys.iter().all(|envoy| running(envoy, revision) >= vms);
    wait_until("every VM runs the rules", || all_run(1));

    let each = 10 * LIMIT / (envoys.len() * CONNECTIONS) as u64;
    let load = Load {
        addresses: envoys.iter().map(Envoy::address).collect(),
        connections: CONNECTIONS,
        pause: Duration::from_millis(10),
        until: Until::Requests(each),
    };
    let request = get("/", &[("x-api-key", "one")]);
    let tally = load.run(|_, _| request.clone());
    let admitted = tally.status(200);
    let leaked = envoys.iter().map(Envoy::metrics);
    let leaked = leaked.map(|metrics| metrics.sum_or_zero("weir_leaked_total", &[]));
    let regions = cluster.regions.iter();
    let alone = regions.filter_map(|region| region.site.aggregator.metrics());
    let alone = alone.map(|metrics| metrics.sum_or_zero("weir_upstream_alone_hits_total", &[]));
    // What was admitted while nobody could be asked is on top of the limit, and counted.
    let leaked = leaked.chain(alone).sum::<f64>();
    println!("admitted {admitted} of {LIMIT}, of these {leaked} alone");
    assert_eq!(tally.failed, 0, "{tally:?}");
    assert_eq!(tally.answered(), admitted + tally.status(429));
    let (asked, limit) = (admitted as f64 - leaked, LIMIT as f64);
    assert!(asked <= limit * 1.05, "{admitted}, {leaked} alone");
    assert!(admitted as f64 >= limit * 0.95, "{admitted}");
    wait_until(
        "every admitted request is in the global books, once",
        || cluster.global_hits("all") == Some(admitted),
    );

    cluster.global.set_rules(&RULES.replace("600", "900"));
    // The file is looked at twice before it is believed.
    let soon = Duration::from_millis(2_500);
    let changed = wait_within(soon, || all_run(2).then_some(()));
    assert!(changed.is_some(), "not every VM runs the new rules in time");
}
