//! The whole path through real parts: Envoys with the shipped module, `weir serve`
//! on a disk, one rule file.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that fails may panic"
)]

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use weir_tests::aggregator::Aggregator;
use weir_tests::binaries;
use weir_tests::envoy::Envoy;
use weir_tests::http::get;
use weir_tests::load::{Load, Until};
use weir_tests::wait::{wait_until, wait_within};

/// A day's limit per key, and a local cap. Requests are held for up to a second,
/// so that a busy machine is not mistaken for a limit.
fn rules(limit: u64, local_cap: u64) -> String {
    format!(
        "version: 1\n\
         domain: api.example.com\n\
         rules:\n  \
           - name: per-key\n    \
             key: header.x-api-key\n    \
             limit: {limit}\n    \
             window: 1d\n    \
             algorithm: fixed_window\n    \
             hold: 1s\n    \
             local_cap: {local_cap}\n"
    )
}

/// Whether every VM of this Envoy runs rules of this revision: one a worker, and
/// the main one.
fn runs(envoy: &Envoy, workers: usize, revision: u64) -> bool {
    let line = format!("rules in force: 1, revision {revision}");
    envoy.log().matches(&line).count() > workers
}

fn status(envoy: &Envoy, key: &str) -> u16 {
    envoy.get("/", &[("x-api-key", key)]).status
}

/// Hits in the aggregator's books.
fn hits(aggregator: &Aggregator) -> f64 {
    aggregator
        .metrics()
        .map_or(-1.0, |metrics| metrics.sum_or_zero("weir_hits_total", &[]))
}

#[test]
fn three_pops_share_one_durable_limit() {
    const LIMIT: u64 = 600;
    let mut aggregator = Aggregator::start(&rules(LIMIT, LIMIT));
    let envoys: Vec<Envoy> = (0..3)
        .map(|_| Envoy::with_weir("", 2, Some(aggregator.address())))
        .collect();
    wait_until("every VM runs the rules", || {
        envoys.iter().all(|envoy| runs(envoy, 2, 1))
    });
    let load = Load {
        addresses: envoys.iter().map(Envoy::address).collect(),
        connections: 4,
        // Seconds of it: tokens lent to a source that did not need them come back
        // with its next flush.
        pause: Duration::from_millis(15),
        until: Until::Requests(300),
    };
    let tally = load.run(|_, _| get("/", &[("x-api-key", "one")]));
    assert_eq!(tally.failed, 0, "{tally:?}");
    assert_eq!(tally.answered(), 3_600, "{tally:?}");
    let admitted = tally.status(200);
    assert!(
        admitted.abs_diff(LIMIT) <= LIMIT / 50,
        "admitted {admitted} of {LIMIT}"
    );
    let all = |hits: f64| (hits - admitted as f64).abs() < 0.5;
    wait_until("every admitted request is in the books", || {
        all(hits(&aggregator))
    });
    aggregator.kill();
    aggregator.restart();
    let again = Envoy::with_weir("", 1, Some(aggregator.address()));
    wait_until("a new POP runs the rules", || runs(&again, 1, 1));
    // A POP that has not met the key yet may admit what the tolerance allows.
    let admitted_anew = (0..LIMIT)
        .take_while(|_| status(&again, "one") == 200)
        .count();
    assert!(
        admitted_anew as u64 <= LIMIT / 50,
        "the limit outlives the aggregator, but {admitted_anew} more were admitted"
    );
    assert_eq!(status(&again, "another"), 200);
}

#[test]
fn an_edited_rule_file_takes_hold_within_two_seconds() {
    let aggregator = Aggregator::start(&rules(1_000, 1_000));
    let envoy = Envoy::with_weir("", 1, Some(aggregator.address()));
    wait_until("both VMs run the rules", || runs(&envoy, 1, 1));
    for _ in 0..3 {
        assert_eq!(status(&envoy, "a"), 200);
    }
    aggregator.set_rules(&rules(2, 2));
    let denied = || (status(&envoy, "a") == 429).then_some(());
    assert!(
        wait_within(Duration::from_secs(2), denied).is_some(),
        "no denial within 2 s"
    );
    aggregator.set_rules("version: 1\nrules: [ { name: broken } ]");
    aggregator.set_rules(&rules(1_000_000, 1_000_000));
    let admitted = || (status(&envoy, "a") == 200).then_some(());
    assert!(
        wait_within(Duration::from_secs(2), admitted).is_some(),
        "still denied after 2 s"
    );
}

#[test]
fn a_killed_aggregator_is_done_without_and_learns_of_the_leak() {
    let mut aggregator = Aggregator::start(&rules(1_000, 10));
    let envoy = Envoy::with_weir(
        r#"{"flush_interval_ms": 200, "timeout_ms": 500}"#,
        1,
        Some(aggregator.address()),
    );
    wait_until("both VMs run the rules", || runs(&envoy, 1, 1));
    aggregator.kill();
    let metric = |name: &str| envoy.metrics().sum_or_zero(name, &[]);
    wait_until("both VMs know that it is away", || {
        metric("weir_sources_away") > 1.5
    });
    let statuses: Vec<u16> = (0..15).map(|_| status(&envoy, "a")).collect();
    let admitted = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(admitted, 10, "the local cap: {statuses:?}");
    wait_until("the leak is counted", || {
        (metric("weir_leaked_total") - 10.0).abs() < 0.5
    });
    aggregator.restart();
    wait_until("both VMs know that it is back", || {
        metric("weir_sources_away") < 0.5
    });
    wait_until("what leaked is in the books", || {
        (hits(&aggregator) - 10.0).abs() < 0.5
    });
    assert_eq!(status(&envoy, "a"), 200, "the region's limit holds again");
}

#[test]
fn an_envoy_with_a_token_is_counted_and_one_without_is_on_its_own() {
    let (token, entry) = new_token();
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("tokens.yaml");
    std::fs::write(&file, format!("tokens: [ {entry} ]\n")).expect("the token file");
    let file = file.to_str().expect("a path in UTF-8");
    let aggregator = Aggregator::start_with(&rules(1_000, 10), &["--token-file", file]);
    let config = format!("{{ \"token\": \"{token}\" }}");
    let known = Envoy::with_weir(&config, 1, Some(aggregator.address()));
    let unknown = Envoy::with_weir("", 1, Some(aggregator.address()));
    wait_until("both VMs with the token run the rules", || {
        runs(&known, 1, 1)
    });
    wait_until("both VMs without know that they are away", || {
        unknown.metrics().sum_or_zero("weir_sources_away", &[]) > 1.5
    });
    assert_eq!(status(&known, "a"), 200);
    let sources_away = known.metrics().sum_or_zero("weir_sources_away", &[]);
    assert!(sources_away < 0.5, "{sources_away}");
    assert!(!runs(&unknown, 1, 1));
    for log in [known.log(), unknown.log(), aggregator.log()] {
        assert!(!log.contains(&token), "a token is in a log");
    }
}

/// A token for edges, and its entry, as the command makes them.
fn new_token() -> (String, Value) {
    let arguments = ["token", "new", "--name", "edges", "--rights", "sync,read"];
    let made = Command::new(binaries::weir())
        .args(arguments)
        .args(["--format", "json"])
        .output()
        .expect("weir runs");
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let token = made["token"].as_str().expect("a token").to_owned();
    (token, made["entry"].clone())
}
