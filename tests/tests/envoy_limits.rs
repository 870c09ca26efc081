//! What clients of one Envoy see at a limit: the real module, with the real Ledger
//! behind it.

#![expect(
    clippy::disallowed_methods,
    reason = "a load on a real Envoy ends by the real clock"
)]

use std::time::{Duration, Instant};

use limiter::rule::KeyPart;
use weir_tests::envoy::Envoy;
use weir_tests::http::get;
use weir_tests::load::{Load, Until};
use weir_tests::region::Region;
use weir_tests::rules::{per_address, per_header, per_window};
use weir_tests::wait::{wait_until, wait_within};

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3600;

/// One worker, and its VM beside Envoy's main one, with the region's rules.
fn envoy(region: &Region) -> Envoy {
    let envoy = Envoy::with_weir("", 1, Some(region.address()));
    wait_until("both VMs run the rules", || {
        region.sources_up_to_date() == 2
    });
    envoy
}

#[test]
fn a_client_at_its_limit_is_told_which_and_when_to_come_back() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 5, LONG)]);
    let envoy = envoy(&region);
    for n in 0..5 {
        assert_eq!(
            envoy.get("/", &[("x-api-key", "a")]).status,
            200,
            "request {n}"
        );
    }
    let denied = envoy.get("/", &[("x-api-key", "a")]);
    assert_eq!(denied.status, 429);
    let wait = denied
        .header("retry-after")
        .expect("retry-after")
        .to_owned();
    assert!(
        (1..=LONG).contains(&wait.parse().expect("seconds")),
        "{wait}"
    );
    assert_eq!(
        denied.header("ratelimit"),
        Some(format!("\"per-key\";r=0;t={wait}").as_str())
    );
    assert_eq!(
        denied.header("ratelimit-policy"),
        Some("\"per-key\";q=5;w=86400")
    );
    assert_eq!(
        denied.header("content-type"),
        Some("application/problem+json")
    );
    let problem: serde_json::Value = serde_json::from_slice(&denied.body).expect("JSON");
    let at = |pointer: &str| problem.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(
        at("/type"),
        "https://iana.org/assignments/http-problem-types#quota-exceeded"
    );
    assert_eq!(at("/status"), 429);
    assert_eq!(at("/violated-policies"), serde_json::json!(["per-key"]));
    assert_eq!(
        envoy.get("/", &[("x-api-key", "b")]).status,
        200,
        "another key has its own limit"
    );
    assert_eq!(envoy.get("/", &[]).status, 200, "no key, no limit");
}

#[test]
fn denials_are_in_the_access_log_and_in_the_metrics() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 2, LONG)]);
    let envoy = envoy(&region);
    for _ in 0..5 {
        let _ = envoy.get("/seen", &[("x-api-key", "a")]);
    }
    wait_until("the access log tells of three denials, twice each", || {
        let log = envoy.access_log();
        let named = |line: &&str| {
            let fields: Vec<&str> = line.split(' ').collect();
            matches!(fields[..], ["429", decision, details, "/seen"]
                if decision.starts_with("per-key:") && details == format!("weir:{decision}"))
        };
        log.lines().filter(named).count() == 3
    });
    let verdicts = |verdict| {
        envoy.metrics().sum_or_zero(
            "weir_requests_total",
            &[("rule", "per-key"), ("verdict", verdict)],
        )
    };
    wait_until("the metrics tell of them", || {
        verdicts("deny") == 3.0 && verdicts("allow") == 2.0
    });
    wait_until("both workers are in the metrics", || {
        envoy.metrics().sum_or_zero("weir_sources", &[]) == 2.0
    });
    let calls = region.calls();
    assert!(
        calls.iter().all(|(_, sync)| sync.pop == "test"),
        "the node's name is the POP's"
    );
}

#[test]
fn a_client_cannot_choose_its_own_address() {
    let region = Region::start(vec![per_address("per-address", 3, LONG)]);
    let envoy = envoy(&region);
    let mut denied = 0;
    for n in 0..6 {
        let claimed = format!("198.51.100.{n}");
        denied += u64::from(envoy.get("/", &[("x-forwarded-for", &claimed)]).status == 429);
    }
    assert_eq!(denied, 3);
}

#[test]
fn a_client_behind_a_trusted_proxy_is_counted_by_its_own_address() {
    let region = Region::trusting(&["127.0.0.0/8"], vec![per_address("per-address", 3, LONG)]);
    let envoy = envoy(&region);
    let status = |list: &str| envoy.get("/", &[("x-forwarded-for", list)]).status;
    for n in 0..3 {
        assert_eq!(status(&format!("203.0.113.{n}, 198.51.100.1")), 200);
    }
    assert_eq!(
        status("203.0.113.9, 198.51.100.1"),
        429,
        "what it claims itself changes nothing"
    );
    assert_eq!(
        status("198.51.100.2"),
        200,
        "another client has its own limit"
    );
}

#[test]
fn three_envoys_of_two_workers_share_one_limit() {
    const LIMIT: u64 = 600;
    let region = Region::start(vec![per_header("shared", "x-api-key", LIMIT, LONG)]);
    let envoys: Vec<Envoy> = (0..3)
        .map(|_| Envoy::with_weir("", 2, Some(region.address())))
        .collect();
    wait_until("all nine VMs run the rules", || {
        region.sources_up_to_date() == 9
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
    assert_eq!(tally.answered(), 3_600);
    let admitted = tally.status(200);
    assert!(
        admitted.abs_diff(LIMIT) <= LIMIT / 50,
        "admitted {admitted} of {LIMIT}"
    );
    wait_until("every admitted request is in the region's books", || {
        region.hits() == admitted
    });
}

#[test]
fn new_rules_take_hold_within_two_seconds_and_no_request_is_dropped() {
    let region = Region::start(vec![per_window("all", 1_000_000, LONG)]);
    let envoy = envoy(&region);
    let load = Load {
        addresses: vec![envoy.address()],
        connections: 2,
        pause: Duration::from_millis(2),
        until: Until::Deadline(Instant::now() + Duration::from_secs(4)),
    };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| load.run(|_, _| get("/", &[])));
        assert_eq!(envoy.get("/", &[]).status, 200);
        let mut closed = per_window("closed", 1, LONG);
        closed.key = vec![KeyPart::Constant("all".into())];
        region.set_rules(vec![per_window("all", 1_000_000, LONG), closed]);
        let denied = || (envoy.get("/", &[]).status == 429).then_some(());
        assert!(
            wait_within(Duration::from_secs(2), denied).is_some(),
            "no denial within 2 s"
        );
        let tally = running.join().expect("the load ends");
        assert_eq!(tally.failed, 0, "{tally:?}");
        assert_eq!(
            tally.answered(),
            tally.status(200) + tally.status(429),
            "{tally:?}"
        );
        assert!(tally.status(429) > 0, "{tally:?}");
    });
}
