//! One region of real processes and sources that run the real limiter, and what a
//! network and machines do to them. Each ends with the books compared: what sources
//! were acknowledged is what the region holds, no more and no less.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

use std::time::Duration;

use weir_tests::aggregator::Aggregator;
use weir_tests::light::Traffic;
use weir_tests::site::{Site, acknowledged};
use weir_tests::wait::wait_until;

/// One rule that is always exhausted, and one that never is.
const RULES: &str = "version: 1
domain: api.example.com
rules:
  - { name: scarce, key: header.x-api-key, limit: 600, window: 1m }
  - { name: ample, key: header.x-api-key, limit: 1000000, window: 1d }
";

/// More than the scarce rule allows, for a few keys.
fn traffic() -> Traffic {
    Traffic {
        keys: ["a", "b", "c"].map(str::to_owned).to_vec(),
        per_second: 40,
    }
}

fn site(each_way: Duration, arguments: &[&str]) -> Site {
    // Little before the first snapshot, so that it is under way, too.
    let mut all = vec!["--snapshot-log-bytes", "20000"];
    all.extend(arguments);
    Site::before(Aggregator::start_with(RULES, &all), each_way, 6, &traffic())
}

#[test]
fn a_region_that_is_far_and_loses_connections_has_in_its_books_what_it_acknowledged() {
    let site = site(Duration::from_millis(75), &[]);
    site.wait_for_more(200);
    site.link.lose_one_in(7);
    site.wait_for_more(400);
    site.link.lose_one_in(0);
    site.compare_books();
}

#[test]
fn a_region_that_is_cut_off_and_comes_back_counts_what_was_admitted_meanwhile_once() {
    let site = site(Duration::from_millis(5), &[]);
    site.wait_for_more(200);
    for _ in 0..2 {
        site.link.fall_silent();
        site.wait_until_away(true);
        let before = site.sums().admitted;
        wait_until("requests are admitted all the same", || {
            site.sums().admitted > before
        });
        site.link.heal();
        site.wait_until_away(false);
        site.wait_for_more(100);
    }
    assert!(
        site.sums().leaked > 0,
        "what was admitted meanwhile is told of"
    );
    site.compare_books();
}

#[test]
fn a_region_that_is_killed_under_load_and_started_again_has_what_it_acknowledged() {
    let mut site = site(Duration::from_millis(1), &[]);
    for _ in 0..3 {
        site.wait_for_more(150);
        site.aggregator.kill();
        site.aggregator.restart();
    }
    site.compare_books();
}

#[test]
fn a_region_that_is_stopped_in_order_under_load_refuses_nobody_before_it_is_gone() {
    let mut site = site(Duration::from_millis(1), &["--drain-delay-ms", "500"]);
    site.wait_for_more(150);
    site.aggregator.stop();
    site.aggregator.restart();
    site.wait_for_more(150);
    site.compare_books();
}

#[test]
fn a_region_whose_data_moves_to_another_machine_goes_on_where_it_was() {
    let mut site = site(Duration::from_millis(1), &[]);
    site.wait_for_more(300);
    site.aggregator.kill();
    let mut fresh = Aggregator::prepare(&[]);
    fresh.set_rules(RULES);
    fresh.copy_data_of(&site.aggregator);
    fresh.restart();
    site.link.lead_to(fresh.address());
    site.aggregator = fresh;
    site.wait_for_more(300);
    site.compare_books();
}

#[test]
fn a_fresh_machine_without_the_data_has_all_that_it_acknowledged_itself() {
    let mut site = site(Duration::from_millis(1), &[]);
    site.wait_for_more(300);
    // From here on no acknowledgement of the old machine arrives.
    site.link.fall_silent();
    site.wait_until_away(true);
    let lost = acknowledged(&site.sources);
    site.aggregator.kill();
    let fresh = Aggregator::start(RULES);
    site.link.lead_to(fresh.address());
    site.aggregator = fresh;
    site.link.heal();
    site.wait_for_more(300);
    site.settle();
    let mut since = acknowledged(&site.sources);
    for (rule, hits) in &mut since {
        *hits -= lost.get(rule).copied().unwrap_or(0);
    }
    assert_eq!(site.books(), Some(since));
}
