//! A rolling upgrade under load, with the release before this one at one end and then
//! at none. What sources were acknowledged is what the region holds.
//!
//! The release is the commit in `tests/previous-release`; `make test-cluster` builds it.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

use std::time::Duration;

use weir_tests::aggregator::Aggregator;
use weir_tests::binaries;
use weir_tests::cluster::Cluster;
use weir_tests::envoy::{Envoy, filter_of};
use weir_tests::envoy_config::Setup;
use weir_tests::http::get;
use weir_tests::light::{Light, Traffic, sums};
use weir_tests::redis_server::Redis;
use weir_tests::site::{Site, acknowledged, books};
use weir_tests::spray::{Spray, admitted};
use weir_tests::wait::wait_until;

/// One rule that is always exhausted, and one that never is; both as the release
/// before this one reads them.
const RULES: &str = "version: 1
domain: api.example.com
rules:
  - { name: scarce, key: header.x-api-key, limit: 200, window: 10s }
  - { name: ample, key: header.x-api-key, limit: 1000000, window: 1d }
";

/// A service of the release before this one.
fn previous(rules: &str) -> Aggregator {
    let mut aggregator = Aggregator::prepare(&["--snapshot-log-bytes", "20000"]);
    aggregator.set_rules(rules);
    aggregator.run_as(binaries::previous_weir());
    aggregator.restart();
    aggregator
}

#[test]
#[ignore = "needs the release before this one: make test-cluster"]
fn an_aggregator_that_is_upgraded_under_load_has_all_that_either_release_acknowledged() {
    let traffic = Traffic {
        keys: ["a", "b", "c"].map(str::to_owned).to_vec(),
        per_second: 40,
    };
    let mut site = Site::before(previous(RULES), Duration::from_millis(1), 6, &traffic);
    site.wait_for_more(600);
    site.aggregator.replace_by(binaries::weir());
    site.wait_for_more(600);
    site.compare_books();
}

/// Two regions under a global aggregator, upgraded in this order under load.
fn upgrade(from_above: bool) {
    const GLOBAL: &str = "version: 1
domain: api.example.com
rules:
  - { name: scarce, key: header.x-api-key, limit: 200, window: 10s, scope: global }
  - { name: ample, key: header.x-api-key, limit: 1000000, window: 1d, scope: global }
  - { name: here, key: header.x-api-key, limit: 1000000, window: 1d }
";
    let traffic = Traffic {
        keys: ["a", "b"].map(str::to_owned).to_vec(),
        per_second: 20,
    };
    let (previous, each_way) = (binaries::previous_weir(), Duration::from_millis(20));
    let mut cluster = Cluster::start_as(&previous, GLOBAL, &["eu", "us"], each_way, 2, &traffic);
    cluster.wait_for_more(100);
    if from_above {
        cluster.global.replace_by(binaries::weir());
        cluster.wait_for_more(100);
    }
    for place in 0..2 {
        let mut regions = cluster.regions.iter_mut();
        let region = regions.nth(place).expect("two of them");
        region.site.aggregator.replace_by(binaries::weir());
        cluster.wait_for_more(100);
    }
    if !from_above {
        cluster.global.replace_by(binaries::weir());
        cluster.wait_for_more(100);
    }
    cluster.compare_books("ample");
    let scarce = cluster.acknowledged("scarce");
    wait_until("the other global rule's hits are there, too", || {
        cluster.global_hits("scarce") == Some(scarce)
    });
    assert_eq!(cluster.global_hits("here"), Some(0));
}

#[test]
#[ignore = "needs the release before this one: make test-cluster"]
fn regions_of_the_release_before_go_on_under_a_new_global_aggregator() {
    upgrade(true);
}

#[test]
#[ignore = "needs the release before this one: make test-cluster"]
fn new_regions_go_on_under_a_global_aggregator_of_the_release_before() {
    upgrade(false);
}

#[test]
#[ignore = "needs the release before this one: make test-cluster"]
fn members_of_a_shared_store_are_upgraded_one_by_one_under_load() {
    let store = Redis::valkey("always");
    let url = format!("redis://{}?lease_ms=1000", store.address());
    let member = |_| {
        let mut member = Aggregator::prepare(&["--store", &url]);
        member.set_rules(RULES);
        member.run_as(binaries::previous_weir());
        member.restart();
        member
    };
    let mut members: Vec<Aggregator> = (0..3).map(member).collect();
    let traffic = Traffic {
        keys: ["a", "b", "c"].map(str::to_owned).to_vec(),
        per_second: 40,
    };
    let source = |member: &Aggregator| Light::start(member.address(), traffic.clone());
    let sources: Vec<Light> = members.iter().map(source).collect();
    let more = |hits: u64| {
        let enough = sums(&sources).acknowledged + hits;
        wait_until("more is acknowledged", || {
            sums(&sources).acknowledged >= enough
        });
    };
    more(200);
    for member in &mut members {
        member.replace_by(binaries::weir());
        more(200);
    }
    sources.iter().for_each(Light::rest);
    wait_until("all that was admitted is acknowledged", || {
        let sums = sums(&sources);
        sums.admitted == sums.acknowledged
    });
    wait_until("and in the books of those that share them", || {
        books(&members) == acknowledged(&sources)
    });
}

#[test]
#[ignore = "needs the release before this one: make test-cluster"]
fn envoys_that_are_replaced_after_the_aggregator_lose_no_hit_on_the_way() {
    const RULE: &str = "version: 1\ndomain: api.example.com\nrules:\n  \
        - { name: ample, key: header.x-api-key, limit: 1000000, window: 1d, hold: 1s }\n";
    let mut aggregator = previous(RULE);
    let address = aggregator.address();
    let envoy = |module| {
        let mut setup = Setup::new(filter_of(module, "")).workers(2);
        setup.aggregator = Some(address);
        let envoy = Envoy::start(setup);
        // One VM a worker, and the main one.
        wait_until("every VM runs the rules", || {
            let line = "rules in force: 1, revision 1";
            envoy.log().matches(line).count() >= 3
        });
        envoy
    };
    let (mut old, new) = (
        envoy(binaries::previous_envoy_wasm()),
        envoy(binaries::envoy_wasm()),
    );
    let addresses = vec![old.address(), new.address()];
    let spray = Spray::start(addresses, 8, 200, get("/", &[("x-api-key", "one")]));
    let more = |what: &str| {
        let enough = admitted(&spray.answers_since(0)) + 300;
        wait_until(what, || admitted(&spray.answers_since(0)) >= enough);
    };
    more("both releases admit before an old aggregator");
    aggregator.replace_by(binaries::weir());
    more("both releases admit before a new aggregator");
    spray.move_to(1);
    more("all go to the new filter");
    old.process().terminate();
    more("the new filter admits by itself");
    let admitted = admitted(&spray.stop());
    let hits = || {
        let metrics = aggregator.metrics();
        metrics.map_or(0, |metrics| {
            metrics.by("weir_hits_total", "rule").values().sum::<u64>()
        })
    };
    wait_until("every admitted request is in the books", || {
        hits() == admitted
    });
}
