//! The counts give the answers of the published vectors, to the millisecond.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::{collections::HashMap, num::NonZeroU64};

use limiter::{
    count::Count,
    quota::{Algorithm, Quota},
    time::{Micros, Timestamp},
    window::Window,
};
use serde_json::Value;

fn quota(case: &Value) -> Quota {
    let number = |name: &str| case[name].as_u64().and_then(NonZeroU64::new);
    let algorithm = match case["algorithm"].as_str().unwrap() {
        "fixed_window" => Algorithm::FixedWindow,
        "sliding_window" => Algorithm::SlidingWindow,
        "token_bucket" => Algorithm::TokenBucket,
        other => unreachable!("{other}"),
    };
    let window = match case["window"].as_str() {
        Some("month") => Window::MONTH,
        Some(other) => unreachable!("{other}"),
        None => Window::new(Micros::from_millis(number("window_ms").unwrap().get())).unwrap(),
    };
    let quota = Quota::new(number("limit").unwrap(), window, algorithm);
    number("burst").map_or(quota, |burst| quota.with_burst(burst))
}

#[test]
fn every_step_of_every_vector_is_answered_exactly() {
    let steps = replay(include_str!("../../tests/cases/algorithms.json"));
    assert!(steps > 500, "the vectors are there: {steps}");
}

#[test]
fn a_month_is_as_long_as_the_calendar_has_it_and_no_month_is_another() {
    let steps = replay(include_str!("../../tests/cases/months.json"));
    assert!(steps > 25, "the vectors are there: {steps}");
}

/// Replays vectors, and says how many steps they have.
fn replay(cases: &str) -> usize {
    let cases: Value = serde_json::from_str(cases).unwrap();
    let mut steps = 0;
    for case in cases.as_array().unwrap() {
        let quota = quota(case);
        let mut counts: HashMap<&str, Count> = HashMap::new();
        for (at, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let place = format!("{} step {at}: {step}", case["name"]);
            let now = Timestamp::from_millis(step["at_ms"].as_u64().unwrap());
            let cost = step["cost"].as_u64().unwrap();
            let count = counts.entry(step["key"].as_str().unwrap()).or_default();
            let allow = count.allows(&quota, cost, now);
            assert_eq!(allow, step["allow"].as_bool().unwrap(), "{place}");
            let wait = count
                .retry_after(&quota, cost, now)
                .map(Micros::as_millis_ceil);
            let expected = if allow {
                Some(0)
            } else {
                step["retry_after_ms"].as_u64()
            };
            assert_eq!(wait, expected, "{place}");
            if allow {
                count.add(&quota, cost, now);
            }
            assert_eq!(
                count.remaining(&quota, now),
                step["remaining"].as_u64().unwrap(),
                "{place}"
            );
            let micro = u64::try_from(count.room_micro(&quota, now)).unwrap();
            assert_eq!(micro / 1_000_000, count.remaining(&quota, now), "{place}");
            steps += 1;
        }
    }
    steps
}

/// A bucket of ten that refills in a minute.
fn bucket() -> Quota {
    let window = Window::new(Micros::from_secs(60)).unwrap();
    let ten = NonZeroU64::new(10).unwrap();
    Quota::new(ten, window, Algorithm::TokenBucket)
}

#[test]
fn what_leaked_empties_a_bucket_and_leaves_no_debt() {
    let (quota, now) = (bucket(), Timestamp::from_millis(1_000_000));
    let mut count = Count::default();
    count.add_leaked(&quota, quota.window.index(now), 500, now);
    assert_eq!(count.room_micro(&quota, now), 0);
    // A debt that was there before stays.
    count.add(&quota, 3, now);
    count.add_leaked(&quota, quota.window.index(now), 500, now);
    assert_eq!(count.room_micro(&quota, now), -3_000_000);
}
