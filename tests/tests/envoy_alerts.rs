//! What alerts ask Envoys for is what a real Envoy says; and the Envoy of the trials in
//! `deploy/compose` takes its configuration.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

use std::fs;
use std::process::Command;

use weir_tests::aggregator::Aggregator;
use weir_tests::binaries;
use weir_tests::envoy::Envoy;
use weir_tests::filter_metrics::NAMES;
use weir_tests::wait::wait_until;

const RULES: &str = "version: 1\ndomain: a\nrules:\n  \
    - { name: a, key: header.x-api-key, limit: 5, window: 1h, hold: 200ms, local_cap: 50 }\n";

#[test]
fn a_filter_that_was_cut_off_has_told_of_everything_that_alerts_ask_for() {
    let mut aggregator = Aggregator::start(RULES);
    let envoy = Envoy::with_weir("", 1, Some(aggregator.address()));
    wait_until("somebody is denied", || {
        envoy.get("/", &[("x-api-key", "one")]).status == 429
    });
    aggregator.kill();
    let missing = || -> Vec<&str> {
        let metrics = envoy.metrics();
        let is_missing = |name: &&&str| metrics.sum(name, &[]).is_none();
        NAMES.iter().filter(is_missing).copied().collect()
    };
    let away = || envoy.metrics().sum_or_zero("weir_sources_away", &[]) > 0.0;
    let mut key = 0;
    wait_until("it is away, and admits all the same", || {
        key += 1;
        let status = envoy
            .get("/", &[("x-api-key", &format!("key {key}"))])
            .status;
        away() && status == 200
    });
    wait_until("it has told of everything", || missing().is_empty());
}

#[test]
fn envoy_takes_the_configuration_of_the_trials() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = binaries::workspace().join("deploy/compose/envoy.yaml");
    let text = fs::read_to_string(path).expect("the configuration is there");
    let here = text
        .replace("@AGGREGATOR@", "weir")
        .replace("@TOKEN@", "weir_token")
        .replace(
            "/filter/weir_envoy.wasm",
            &binaries::envoy_wasm().to_string_lossy(),
        );
    assert!(
        !here
            .lines()
            .any(|line| line.contains(": @") && !line.contains("@type"))
    );
    let file = folder.path().join("envoy.yaml");
    fs::write(&file, here).expect("a file");
    let output = Command::new(binaries::envoy())
        .args(["--mode", "validate", "-c"])
        .arg(&file)
        .output()
        .expect("Envoy runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
