//! The published cases: right answers are given, and bounds are kept.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use std::path::{Path, PathBuf};

use simulator::{Format, Options, Outcome, run, run_text};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/cases")
        .join(name)
}

fn replay(name: &str) -> Outcome {
    run(&case(name), &Options::default())
}

/// The file with one word of it put in place of another, wherever it stands.
fn altered(name: &str, word: &str, other: &str) -> Outcome {
    let text = std::fs::read_to_string(case(name)).expect("the case is there");
    assert!(text.contains(word), "{name} has no {word}");
    run_text(name, &text.replacen(word, other, 1), &Options::default())
}

#[test]
fn every_vector_is_answered_rightly_by_a_ledger_and_by_a_limiter_alone() {
    let outcome = replay("algorithms.json");
    assert_eq!(outcome.exit_code, 0, "{}", outcome.text);
}

#[test]
fn months_are_those_of_the_calendar_on_a_ledger_and_on_a_limiter_alone() {
    let outcome = replay("months.json");
    assert_eq!(outcome.exit_code, 0, "{}", outcome.text);
}

#[test]
fn an_answer_that_differs_is_named_with_its_vector_and_step() {
    let outcome = altered("algorithms.json", "\"remaining\": 2,", "\"remaining\": 1,");
    assert_eq!(outcome.exit_code, 1);
    let words = "fixed_window-0, step 0 (at 540048 ms, key b, cost 1), on a ledger: remaining is 2";
    assert!(outcome.text.starts_with(words), "{}", outcome.text);
}

#[test]
fn a_gateway_counts_each_route_and_shares_its_counts_among_processes() {
    let outcome = replay("gateway.json");
    assert_eq!(outcome.exit_code, 0, "{}", outcome.text);
}

#[test]
fn a_gateway_that_answers_otherwise_is_named() {
    let outcome = altered(
        "gateway.json",
        "[true,true,true,false",
        "[true,true,true,true",
    );
    assert_eq!(outcome.exit_code, 1);
    let words = "limits-per-route, request 3";
    assert!(outcome.text.starts_with(words), "{}", outcome.text);
}

#[test]
fn every_scenario_keeps_its_bounds() {
    let outcome = replay("accuracy.json");
    assert_eq!(outcome.exit_code, 0, "{}", outcome.text);
}

/// Windows and buckets that are short beside a flush, limits that are small beside
/// the fleet, and a bucket whose region was gone: each was missed by far once.
#[test]
fn limits_that_are_short_or_small_are_kept_as_well() {
    for name in [
        "limit-100-per-second",
        "window-of-2s-20-sources",
        "bucket-tiny-burst",
        "five-a-minute-fixed",
        "gone-bucket",
    ] {
        let options = Options {
            only: Some(name),
            ..Options::default()
        };
        let outcome = run(&case("more.json"), &options);
        assert_eq!(outcome.exit_code, 0, "{}", outcome.text);
    }
}

/// Requests that fail are given back, and others cost what their responses say: the
/// fleet admits about what one limiter would that is told the same.
#[test]
fn a_fleet_that_heeds_responses_admits_about_what_one_limiter_does() {
    let outcome = run(&case("responses.json"), &Options::default());
    assert_eq!(outcome.exit_code, 0, "{}", outcome.text);
    assert!(outcome.text.contains("refunds"), "{}", outcome.text);
}

#[test]
fn a_bound_that_is_misspelt_is_an_error_with_its_line() {
    let outcome = altered("accuracy.json", "\"error_max\"", "\"eror_max\"");
    assert_eq!(outcome.exit_code, 2);
    let words = "accuracy.json:22:13: unknown field `eror_max`";
    assert!(outcome.text.starts_with(words), "{}", outcome.text);
}

#[test]
fn a_place_that_is_not_there_cannot_be_cut_off() {
    let outcome = altered("accuracy.json", "\"pop\": 0", "\"pop\": 10");
    assert_eq!(outcome.exit_code, 2);
    assert!(outcome.text.contains("one-pop-cut-off"), "{}", outcome.text);
}

/// Two regions, each with the limit by itself.
const APART: &str = r#"[{"name": "apart", "rule": {"limit": 100, "window_ms": 10000},
    "regions": 2, "pops": 4, "workers_per_pop": 2, "region_rtt_ms": 2, "duration_s": 30,
    "traffic": {"kind": "zipf", "keys": 50, "exponent": 1, "total_rps": 200},
    "bounds": {"error_max": 0.02, "error_min": -0.02, "contested_error_max": 0.02,
    "contested_error_min": -0.03, "lost_hits": 0, "double_hits": 0}}]"#;

#[test]
fn each_region_has_a_limit_by_itself_and_says_what_it_had_to_do() {
    let options = Options {
        format: Format::Json,
        ..Options::default()
    };
    let outcome = run_text("apart.json", APART, &options);
    assert_eq!(outcome.exit_code, 0, "{}", outcome.text);
    let reports: serde_json::Value = serde_json::from_str(&outcome.text).expect("it is JSON");
    let figure = |path: &str| {
        let figure = reports.pointer(path).and_then(serde_json::Value::as_f64);
        figure.unwrap_or_else(|| panic!("no {path} in {reports}"))
    };
    assert!(figure("/0/contested_keys") > 1.0);
    for region in 0..2 {
        for name in [
            "messages_per_s",
            "deltas_per_s",
            "flush_up_bytes_per_s",
            "ask_down_bytes_per_s",
            "log_bytes_per_s",
            "keys",
            "bytes_per_key",
            "instructions_per_request",
        ] {
            let path = format!("/0/regions/{region}/{name}");
            assert!(figure(&path) > 0.0, "{path}");
        }
    }
}

#[test]
fn a_region_that_is_not_there_is_an_error() {
    for (word, other, what) in [
        ("\"regions\": 2", "\"regions\": 9", "regions must be 1 to"),
        (
            "\"regions\": 2",
            "\"regoins\": 2",
            "unknown field `regoins`",
        ),
        (
            "\"bounds\"",
            "\"faults\": [{\"kind\": \"region_restart\", \"region\": 2, \"at_s\": 1, \"down_s\": 1}], \"bounds\"",
            "region names place 2, and there are 2",
        ),
        (
            "\"bounds\"",
            "\"faults\": [{\"kind\": \"global_restart\", \"at_s\": 1, \"down_s\": 1}], \"bounds\"",
            "there is no `global` that could fail",
        ),
    ] {
        let outcome = run_text(
            "apart.json",
            &APART.replace(word, other),
            &Options::default(),
        );
        assert_eq!(outcome.exit_code, 2, "{}", outcome.text);
        assert!(outcome.text.contains(what), "{}", outcome.text);
    }
}

/// A limit that three regions share, 150 ms from each other: under a flood and within
/// it, in windows shorter than the way there and back, with a region cut off, and with the
/// books above lost and brought back.
#[test]
fn regions_that_share_a_limit_keep_it_together() {
    for name in [
        "global-flood",
        "global-steady",
        "global-steady-at",
        "global-window-1s",
        "global-window-100ms",
        "global-cut-off",
        "global-restart",
        "region-restart",
        "global-lossy",
    ] {
        let options = Options {
            only: Some(name),
            ..Options::default()
        };
        let outcome = run(&case("global.json"), &options);
        assert_eq!(outcome.exit_code, 0, "{}", outcome.text);
    }
}

#[test]
fn a_scenario_that_is_asked_for_and_missing_is_an_error() {
    let options = Options {
        only: Some("no-such-thing"),
        ..Options::default()
    };
    assert_eq!(run(&case("accuracy.json"), &options).exit_code, 2);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let lossy = |seed| {
        let options = Options {
            only: Some("lossy-network"),
            format: Format::Json,
            seed,
            ..Options::default()
        };
        run(&case("accuracy.json"), &options).text
    };
    assert_eq!(lossy(None), lossy(Some(7)));
    assert_ne!(lossy(None), lossy(Some(8)));
}
