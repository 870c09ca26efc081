//! Three regions 150 ms from a global aggregator, real processes all of them, and what
//! networks and machines do to them. Each ends with the books compared: what sources
//! were acknowledged is what their region holds, and what the global books hold.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that fails may panic"
)]

use std::time::Duration;

use weir_tests::aggregator::Aggregator;
use weir_tests::cluster::Cluster;
use weir_tests::light::Traffic;
use weir_tests::wait::{wait_until, wall_us};

/// A global rule that is always exhausted, one that never is, and one of each region.
const RULES: &str = "version: 1
domain: api.example.com
rules:
  - { name: scarce, key: header.x-api-key, limit: 200, window: 10s, scope: global }
  - { name: ample, key: header.x-api-key, limit: 1000000, window: 1d, scope: global }
  - { name: here, key: header.x-api-key, limit: 1000000, window: 1d }
";

/// What the regions are called.
const REGIONS: [&str; 3] = ["eu", "us", "ap"];

/// Half of the round trip between a region and the global aggregator.
const EACH_WAY: Duration = Duration::from_millis(75);

fn cluster() -> Cluster {
    let traffic = Traffic {
        keys: ["a", "b"].map(str::to_owned).to_vec(),
        per_second: 20,
    };
    Cluster::start(RULES, &REGIONS, EACH_WAY, 2, &traffic)
}

/// All three of what is global, and what is not.
fn compare(cluster: &Cluster) {
    cluster.compare_books("ample");
    let scarce = cluster.acknowledged("scarce");
    wait_until("the other rule's hits are there, too", || {
        cluster.global_hits("scarce") == Some(scarce)
    });
    assert!(scarce > 0);
}

#[test]
fn regions_that_are_far_add_up_to_what_their_sources_were_acknowledged() {
    let cluster = cluster();
    cluster.wait_for_more(200);
    compare(&cluster);
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn a_network_that_loses_connections_loses_no_hit_and_doubles_none() {
    let cluster = cluster();
    for region in &cluster.regions {
        region.up.lose_one_in(9);
        region.site.link.lose_one_in(31);
    }
    for _ in 0..4 {
        cluster.wait_for_more(200);
    }
    for region in &cluster.regions {
        region.up.lose_one_in(0);
        region.site.link.lose_one_in(0);
    }
    compare(&cluster);
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn a_region_that_is_cut_off_goes_on_and_reports_once_when_it_is_back() {
    let cluster = cluster();
    cluster.wait_for_more(100);
    for _ in 0..2 {
        let cut_off = &cluster.regions[0];
        cut_off.up.fall_silent();
        let before = cluster.global_hits("here");
        cut_off.site.wait_for_more(200);
        assert!(!cut_off.site.sources.iter().any(|source| source.is_away()));
        assert_eq!(cluster.global_hits("here"), before);
        cut_off.up.heal();
        cluster.wait_for_more(100);
    }
    compare(&cluster);
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn a_global_aggregator_that_is_killed_and_started_again_has_all_of_it() {
    let mut cluster = cluster();
    for _ in 0..3 {
        cluster.wait_for_more(150);
        cluster.global.kill();
        // Regions go on meanwhile.
        cluster.wait_for_more(150);
        cluster.global.restart();
    }
    compare(&cluster);
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn a_region_that_is_killed_and_started_again_sends_up_what_it_had_not() {
    let mut cluster = cluster();
    for _ in 0..3 {
        cluster.wait_for_more(150);
        cluster.regions[0].site.aggregator.kill();
        cluster.regions[0].site.aggregator.restart();
    }
    cluster.wait_for_more(100);
    compare(&cluster);
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn a_region_whose_data_moves_to_a_fresh_machine_goes_on_where_it_was() {
    let mut cluster = cluster();
    cluster.wait_for_more(200);
    let region = &mut cluster.regions[0];
    region.site.aggregator.kill();
    let mut fresh = region.fresh();
    fresh.copy_data_of(&region.site.aggregator);
    fresh.restart();
    region.replace_by(fresh);
    cluster.wait_for_more(200);
    compare(&cluster);
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn a_region_on_a_fresh_machine_without_its_data_doubles_nothing_that_is_up_already() {
    let mut cluster = cluster();
    cluster.wait_for_more(200);
    // All that it has counted is up before its machine is gone.
    for region in &cluster.regions {
        region.site.settle();
    }
    let before = cluster.acknowledged("ample");
    wait_until("the global books have all", || {
        cluster.global_hits("ample") == Some(before)
    });
    let region = &mut cluster.regions[0];
    region.site.aggregator.kill();
    let mut fresh = region.fresh();
    fresh.restart();
    region.replace_by(fresh);
    for source in cluster.sources() {
        source.resume(20);
    }
    cluster.wait_for_more(200);
    for region in &cluster.regions {
        region.site.settle();
    }
    let all = cluster.acknowledged("ample");
    assert!(all > before);
    wait_until("the global books have all", || {
        cluster.global_hits("ample") >= Some(all)
    });
    assert_eq!(cluster.global_hits("ample"), Some(all));
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn ten_times_what_a_global_limit_allows_is_admitted_within_five_percent_of_it() {
    const LIMIT: u64 = 600;
    const WINDOW_S: u64 = 20;
    let rules = format!(
        "version: 1\ndomain: api.example.com\nrules:\n  - {{ name: all, key: header.x-api-key, \
         limit: {LIMIT}, window: {WINDOW_S}s, algorithm: fixed_window, scope: global }}\n"
    );
    // Of three sources in each of three regions.
    let per_second = 10 * LIMIT / WINDOW_S / 9;
    let traffic = Traffic {
        keys: vec!["a".to_owned()],
        per_second: u32::try_from(per_second).expect("a few"),
    };
    let cluster = Cluster::start(&rules, &REGIONS, EACH_WAY, 3, &traffic);
    // Just before a window ends nothing is left of it: what was admitted until then
    // was admitted in windows before.
    let until_the_end_of_a_window = || {
        let window_us = WINDOW_S * 1_000_000;
        let left = window_us - wall_us() % window_us;
        std::thread::sleep(Duration::from_micros(
            (left + window_us - 100_000) % window_us,
        ));
    };
    until_the_end_of_a_window();
    for window in 0..3 {
        let before = cluster.sums().admitted;
        std::thread::sleep(Duration::from_millis(500));
        until_the_end_of_a_window();
        let admitted = cluster.sums().admitted - before;
        eprintln!("window {window}: {admitted} of {LIMIT} admitted");
        // The first one begins with sources that have just met.
        let error = admitted.abs_diff(LIMIT) * 100 / LIMIT;
        assert!(
            window == 0 || error <= 5,
            "window {window}: {admitted} of {LIMIT}"
        );
    }
    cluster.compare_books("all");
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn rules_that_change_above_are_in_force_everywhere_within_two_seconds() {
    let cluster = cluster();
    let revisions = || cluster.sources().map(|source| source.revision()).min();
    let before = revisions();
    cluster
        .global
        .set_rules(&RULES.replace("limit: 200", "limit: 300"));
    let start = wall_us();
    wait_until("every source runs them", || revisions() > before);
    // The file is looked at twice before it is believed.
    let took = Duration::from_micros(wall_us() - start);
    assert!(took < Duration::from_millis(2_500), "{took:?}");
    compare(&cluster);
}

#[test]
#[ignore = "takes a while: make test-cluster"]
fn a_region_without_a_global_aggregator_at_its_start_is_not_ready_before_it_has_rules() {
    let mut global = Aggregator::prepare(&["--region", "global"]);
    let upstream = format!("http://{}", global.address());
    let mut region = Aggregator::prepare(&["--upstream", &upstream, "--region", "eu"]);
    let starting = std::thread::spawn(move || {
        region.restart();
        region
    });
    global.set_rules(RULES);
    global.restart();
    let region = starting.join().expect("it becomes ready");
    assert!(region.metrics().is_some());
}
