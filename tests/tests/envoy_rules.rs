//! Rules that are put over the API under load: three Envoys of two workers each with
//! the shipped module, and `weir serve` on a disk.

use std::time::Duration;

use weir_tests::fleet::Fleet;
use weir_tests::http;
use weir_tests::spray::admitted;
use weir_tests::wait::{wait_until, wait_within, wall_us};

/// How long it may take until rules are in force everywhere.
const EVERYWHERE_WITHIN: Duration = Duration::from_secs(2);

fn rules(limit: u64) -> String {
    format!(
        "version: 1\n\
         domain: api.example.com\n\
         rules:\n  \
           - name: per-key\n    \
             key: header.x-api-key\n    \
             limit: {limit}\n    \
             window: 1d\n    \
             algorithm: fixed_window\n"
    )
}

/// Puts rules, and waits until they are in force everywhere. Says how long that took
/// from the answer on.
fn put(fleet: &Fleet, limit: u64, revision: u64) -> Duration {
    let request = http::request("PUT", "/v1/rules", &[], rules(limit).as_bytes());
    let answer = http::send(fleet.aggregator.address(), &request);
    let status = answer.as_ref().map(|answer| answer.status);
    assert!(matches!(status, Ok(200)), "{answer:?}");
    let put_us = wall_us();
    let everywhere = wait_within(EVERYWHERE_WITHIN, || {
        fleet.runs_rules(revision).then_some(())
    });
    assert!(everywhere.is_some(), "{limit} is not in force everywhere");
    Duration::from_micros(wall_us() - put_us)
}

/// The share of a limit that a fleet may be off by.
fn about(limit: u64) -> core::ops::RangeInclusive<u64> {
    limit - limit / 50..=limit + limit / 50
}

#[test]
fn rules_put_under_load_are_everywhere_in_two_seconds_and_neither_drop_nor_forget_a_request() {
    const LOW: u64 = 600;
    const HIGH: u64 = 900;
    let fleet = Fleet::start_with(&rules(100_000), &["--rules-from", "api"]);
    let spray = fleet.spray("one", 150);
    let admitted_now = || admitted(&spray.answers_since(0));
    wait_until("some hits are on record", || fleet.hits() >= Some(200));
    let lowered = put(&fleet, LOW, 2);
    wait_until("the limit is spent", || {
        admitted_now() >= *about(LOW).start()
    });
    let spent_us = wall_us();
    wait_until("many requests later", || {
        spray.answers_since(spent_us).len() > 450
    });
    let low = admitted_now();
    // What was counted before still counts: else it were some 200 more.
    assert!(about(LOW).contains(&low), "{low} of {LOW}");
    let raised = put(&fleet, HIGH, 3);
    wait_until("the rest is spent", || {
        admitted_now() >= *about(HIGH).start()
    });
    let spent_us = wall_us();
    wait_until("many requests later", || {
        spray.answers_since(spent_us).len() > 450
    });
    let answers = spray.stop();
    let high = admitted(&answers);
    eprintln!("lowered in {lowered:?}, raised in {raised:?}; {low} of {LOW}, {high} of {HIGH}");
    assert!(about(HIGH).contains(&high), "{high} of {HIGH}");
    let dropped = answers.iter().filter(|answer| answer.status.is_none());
    assert_eq!(dropped.count(), 0, "requests without an answer");
    wait_until("every admitted request is in the books, once", || {
        fleet.hits() == Some(high)
    });
}
