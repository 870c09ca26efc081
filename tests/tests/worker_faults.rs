//! Whatever clients, operators and regions do, the Worker goes on answering.

use std::time::Duration;

use weir_tests::http;
use weir_tests::region::{Manner, Region};
use weir_tests::rules::per_header;
use weir_tests::upstream::Upstream;
use weir_tests::wait::wait_until;
use weir_tests::workerd::{Setup, Workerd, compiled};

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3_600;

/// Takes for a dataset what says on the log what it is given.
const DATASET: &str = r#"
import worker, { Region } from "./main.js";
const WEIR_METRICS = { writeDataPoint: ({ blobs, doubles }) => console.log(blobs.join("|"), doubles[0]) };
export { Region };
export default { fetch: (request, env, ctx) => worker.fetch(request, { ...env, WEIR_METRICS }, ctx) };
"#;

/// A module before the Worker's own that makes a request with `x-trap` trap inside
/// the WebAssembly, by a panic: it asks for more room than there is.
const TRAP: &str = r#"
import worker, { Region } from "./main.js";
import { Module } from "./module.js";
const during = Module.prototype.during;
Module.prototype.during = function (request, peer, act) {
  if (request.headers.has("x-trap")) this.exports.inbox(-1);
  return during.call(this, request, peer, act);
};
export { Region };
export default worker;
"#;

#[test]
fn a_panic_costs_the_isolate_its_memory_and_nobody_an_answer() {
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", 2, LONG)]);
    let setup = Setup::new(&rules, origin.address()).entry("trap.js", TRAP);
    let workerd = Workerd::start(setup);
    assert_eq!(workerd.statuses("one", 3), [200, 200, 429]);
    wait_until("what was admitted is in the books", || {
        workerd.books("hits") == Some(2)
    });
    let trapped = workerd.get("/", &[("x-trap", "now"), ("x-api-key", "one")]);
    assert_eq!(trapped.status, 200, "the request itself goes on");
    let log = workerd.process().log();
    assert!(log.contains("panicked at"), "{log}");
    assert!(log.contains("starts anew"), "{log}");
    // The region has not forgotten.
    assert_eq!(workerd.statuses("one", 2), [429, 429]);
    assert_eq!(workerd.statuses("two", 3), [200, 200, 429]);
}

#[test]
fn bytes_that_are_no_text_are_counted_like_any_others() {
    let origin = Upstream::start();
    let rules = vec![
        per_header("per-key", "x-api-key", 2, LONG),
        per_header("per-agent", "user-agent", 1_000, LONG),
    ];
    let workerd = Workerd::start(Setup::new(&compiled(1, rules), origin.address()));
    let odd = b"GET /\xff\xfe?q=\xc3\x28 HTTP/1.1\r\nhost: a\r\nx-api-key: \xff\xc0\x80\r\nuser-agent: \x80\r\ncookie: \xf5=\xff\r\n\r\n";
    let send = |bytes: &[u8]| {
        http::send(workerd.address(), bytes)
            .map(|answer| answer.status)
            .ok()
    };
    let told: Vec<_> = (0..3).map(|_| send(odd)).collect();
    assert!(told.iter().all(Option::is_some), "{told:?}");
    assert_eq!(told.last(), Some(&Some(429)), "{told:?}");
    let many = "a".repeat(60_000);
    assert_eq!(workerd.get("/", &[("x-api-key", &many)]).status, 200);
    assert_eq!(workerd.statuses("one", 3), [200, 200, 429]);
}

#[test]
fn without_its_aggregator_an_isolate_keeps_the_local_cap_and_reports_what_leaked() {
    const CAP: u64 = 3;
    let mut rule = per_header("per-key", "x-api-key", 100, LONG);
    rule.local_cap = CAP;
    let region = Region::start(vec![rule.clone()]);
    region.set_manner(Manner::Hangup);
    let origin = Upstream::start();
    let setup = Setup::new(&compiled(1, vec![rule]), origin.address()).entry("d.js", DATASET);
    let workerd = Workerd::start(setup.aggregator(region.address()));
    let told = workerd.statuses("one", 10);
    let admitted = told.iter().filter(|status| **status == 200).count() as u64;
    assert_eq!(admitted, CAP, "{told:?}");
    assert_eq!(region.hits(), 0);
    region.set_manner(Manner::Good);
    wait_until("the region hears of what leaked", || {
        // An isolate has no life of its own: a request brings it to speak.
        workerd.get("/", &[]).status == 200 && region.leaked() == CAP
    });
    assert_eq!(region.hits(), CAP);
    // In as many steps as there were reports.
    let sum = |metric: &str| -> u64 {
        let log = workerd.process().log();
        let steps = log.lines().filter_map(|line| line.strip_prefix(metric));
        steps.filter_map(|by| by.trim().parse::<u64>().ok()).sum()
    };
    wait_until("the isolate has told its operator", || {
        sum("weir_leaked_total||per-key|") == CAP
            && sum("weir_requests_total||per-key|deny") == 10 - CAP
    });
}

#[test]
fn an_aggregator_that_answers_nonsense_or_never_keeps_no_request_and_loses_no_count() {
    const CAP: u64 = 4;
    let mut rule = per_header("per-key", "x-api-key", CAP, LONG);
    rule.hold = limiter::time::Micros::from_millis(50);
    let region = Region::start(vec![rule.clone()]);
    let origin = Upstream::start();
    let setup = Setup::new(&compiled(1, vec![rule]), origin.address())
        .aggregator(region.address())
        .variable("WEIR_TIMEOUT_MS", "300");
    let workerd = Workerd::start(setup);
    let mut admitted = 0;
    for (key, manner) in [
        ("one", Manner::Instead(200, b"nonsense".to_vec())),
        ("two", Manner::Instead(503, Vec::new())),
        ("three", Manner::Stuck),
        ("four", Manner::Late(Duration::from_millis(400))),
    ] {
        region.set_manner(manner.clone());
        // The first may be denied: until it has failed twice, it may only be late.
        let told = workerd.statuses(key, 8);
        let passed = told.iter().filter(|status| **status == 200).count() as u64;
        assert!((1..=CAP).contains(&passed), "{manner:?}: {told:?}");
        assert_eq!(told.last(), Some(&429), "{manner:?}: {told:?}");
        admitted += passed;
    }
    region.set_manner(Manner::Good);
    wait_until("the region is believed again", || {
        workerd.get("/", &[]).status == 200 && region.hits() == admitted
    });
}

#[test]
fn a_setting_that_is_wrong_is_told_by_its_name_with_what_would_be_right() {
    let origin = Upstream::start();
    let rules = compiled(1, Vec::new());
    for (name, value, said) in [
        ("WEIR_REGION", "moon", "must be \"object\" or \"url\""),
        ("WEIR_SHARDS", "65", "must be a whole number, 1 to 64"),
        (
            "WEIR_SHARD",
            "4",
            "WEIR_SHARD is not known; known are WEIR_REGION,",
        ),
        (
            "WEIR_AGGREGATOR_URL",
            "weir.example.com",
            "must be a URL like https://",
        ),
        (
            "WEIR_ORIGIN",
            "https://a.example/b",
            "scheme, host and port alone",
        ),
        ("WEIR_POP", "\u{e9}", "`pop` must be printable ASCII"),
    ] {
        let setup = Setup::new(&rules, origin.address()).variable(name, value);
        let answer = Workerd::start(setup).get("/", &[]);
        assert_eq!(answer.status, 500, "{name}");
        assert!(answer.text().contains(said), "{}", answer.text());
    }
    let nonsense = Workerd::start(Setup::new(b"rules: []", origin.address())).get("/", &[]);
    assert!(
        nonsense.text().contains("weir rules compile"),
        "{nonsense:?}"
    );
}

#[test]
fn settings_of_the_aggregator_above_that_are_wrong_are_told_by_their_names() {
    let origin = Upstream::start();
    let rules = compiled(1, Vec::new());
    let setup = |variables: &[(&str, &str)]| {
        let setup = Setup::new(&rules, origin.address());
        let set = |setup: Setup, (name, value): &(&str, &str)| setup.variable(name, value);
        variables.iter().fold(setup, set)
    };
    let url = ("WEIR_UPSTREAM_URL", "https://weir.example.com");
    let region = ("WEIR_UPSTREAM_REGION", "cloud");
    for (variables, said) in [
        (vec![url], "WEIR_UPSTREAM_REGION is \"\""),
        (
            vec![url, ("WEIR_UPSTREAM_REGION", "a b")],
            "1 to 64 visible",
        ),
        (
            vec![region],
            "WEIR_UPSTREAM_REGION is set: it needs WEIR_UPSTREAM_URL",
        ),
        (
            vec![("WEIR_UPSTREAM_TOKEN", "t")],
            "WEIR_UPSTREAM_TOKEN is set: it needs",
        ),
        (
            vec![("WEIR_UPSTREAM_URL", "https://a.example,b.example"), region],
            "WEIR_UPSTREAM_URL is \"b.example\", must be a URL like https://",
        ),
        (
            vec![("WEIR_UPSTREAM_URL", "https://a.example/b"), region],
            "WEIR_UPSTREAM_URL must be scheme, host and port alone",
        ),
        (
            vec![url, region, ("WEIR_AGGREGATOR_URL", "https://a.example")],
            "WEIR_UPSTREAM_URL is for a region of objects",
        ),
        (
            vec![url, region, ("WEIR_UPSTREAM", "x")],
            "WEIR_UPSTREAM is not known",
        ),
    ] {
        let answer = Workerd::start(setup(&variables)).get("/", &[]);
        assert_eq!(answer.status, 500, "{variables:?}");
        assert!(answer.text().contains(said), "{}", answer.text());
    }
}
