//! A list of a hundred thousand keys that are not limited, beside the rule file: a real
//! Envoy of two workers with the shipped module, and `weir serve` on a disk.

use std::fmt::Write;
use std::time::Duration;

use weir_tests::aggregator::{Aggregator, replace_file};
use weir_tests::envoy::Envoy;
use weir_tests::wait::{wait_until, wait_within, wall_us};

/// How long it may take until a change of the list is in force everywhere.
const EVERYWHERE_WITHIN: Duration = Duration::from_secs(2);

const LISTED: usize = 100_000;
const LIMIT: usize = 3;

const WITHOUT: &str = "version: 1\ndomain: d\nrules: []\n";
const RULES: &str = "version: 1
domain: d
tiers: [ { name: vip, when: { key_in: vip-keys.txt } } ]
rules:
  - { name: per-key, key: header.x-api-key, limit: 3, window: 1d, algorithm: fixed_window,
      per_tier: { vip: unlimited } }
";

/// A list of `LISTED` keys, the last one of which is this.
fn list(last: &str) -> String {
    let mut text = String::from("# who is not limited\n");
    for key in 1..LISTED {
        let _ = writeln!(text, "customer-{key:06}-8f14e45fceea167a");
    }
    text + last + "\n"
}

/// How many of so many requests are admitted, each over a connection of its own.
fn admitted(envoy: &Envoy, key: &str, requests: usize) -> usize {
    let statuses = (0..requests).map(|_| envoy.get("/", &[("x-api-key", key)]).status);
    statuses.filter(|status| *status == 200).count()
}

#[test]
fn a_hundred_thousand_listed_keys_are_not_limited_and_a_change_of_the_list_is_soon_in_force() {
    let aggregator = Aggregator::start(WITHOUT);
    let envoy = Envoy::with_weir("", 2, Some(aggregator.address()));
    let vip = aggregator.rules_file().with_file_name("vip-keys.txt");
    let runs = |revision: u64| {
        let line = format!("rules in force: 2, revision {revision}");
        envoy.log().matches(&line).count() > 2
    };
    replace_file(&vip, &list("late"));
    aggregator.set_rules(RULES);
    wait_until("every VM runs the rules", || runs(2));
    for key in [
        "customer-000001-8f14e45fceea167a",
        "customer-099999-8f14e45fceea167a",
        "late",
    ] {
        assert_eq!(
            admitted(&envoy, key, 4 * LIMIT),
            4 * LIMIT,
            "{key} is listed"
        );
    }
    for key in [
        "customer-100000-8f14e45fceea167a",
        "customer-000001",
        "later",
    ] {
        assert_eq!(admitted(&envoy, key, 4 * LIMIT), LIMIT, "{key} is not");
    }
    replace_file(&vip, &list("later"));
    let put_us = wall_us();
    let everywhere = wait_within(EVERYWHERE_WITHIN, || runs(3).then_some(()));
    eprintln!(
        "a list of {LISTED} was everywhere after {:?}",
        Duration::from_micros(wall_us() - put_us)
    );
    assert!(everywhere.is_some(), "the list is not in force everywhere");
    assert_eq!(admitted(&envoy, "later", 4 * LIMIT), 4 * LIMIT);
    assert_eq!(admitted(&envoy, "late", 4 * LIMIT), LIMIT);
    assert_eq!(
        admitted(&envoy, "customer-000001", 1),
        0,
        "what was spent is spent"
    );
    let per_tier = |tier: &[(&str, &str)]| envoy.metrics().sum_or_zero("weir_requests_total", tier);
    wait_until("the metrics are handed over", || {
        per_tier(&[("rule", "per-key")]) > 0.0
    });
    assert!(
        per_tier(&[("tier", "vip")]) == 0.0,
        "who is unlimited is not counted"
    );
}
