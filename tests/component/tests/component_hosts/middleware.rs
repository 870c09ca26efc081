//! The middleware in a server of WASI's HTTP: who is denied, who goes on, and what the
//! region hears of it.

use limiter::rule::{HOLD_MAX, QuotaHeaders, Rule, StatusMatch, TellWhen};
use weir_tests::region::{Manner, Region};
use weir_tests::rules::{per_address, per_header, per_window};
use weir_tests::wait::wait_until;

use crate::site::Site;

const HEADER: &str = "x-key";

/// A busy machine may take its time to answer, and nobody is to be denied for that.
fn patient(mut rule: Rule) -> Rule {
    rule.hold = HOLD_MAX;
    rule
}

fn region(limit: u64) -> Region {
    Region::start(vec![patient(per_header("per-key", HEADER, limit, 3_600))])
}

#[test]
fn a_request_within_the_limit_goes_on_and_one_over_it_is_answered_as_by_every_filter() {
    let region = region(3);
    let site = Site::before(region.address(), &[]);
    for _ in 0..3 {
        let response = site.get("/", &[(HEADER, "a")]).expect("a response");
        assert_eq!(response.status(), 200);
        assert_eq!(
            response
                .headers()
                .get("x-inner")
                .map(|value| value.as_bytes()),
            Some(&b"yes"[..])
        );
        assert_eq!(&**response.body(), b"from behind");
    }
    let denied = site.get("/", &[(HEADER, "a")]).expect("a response");
    assert_eq!(denied.status(), 429);
    let header = |name: &str| {
        denied
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    assert!(header("retry-after").is_some(), "{denied:?}");
    assert!(header("ratelimit").is_some_and(|value| value.starts_with("\"per-key\";r=0")));
    assert_eq!(header("content-type"), Some("application/problem+json"));
    assert!(String::from_utf8_lossy(denied.body()).contains("quota-exceeded"));
    assert_eq!(site.status("/", &[(HEADER, "b")]), 200);
    assert_eq!(site.status("/", &[]), 200);
    assert_eq!(site.handled(), 5);
}

#[test]
fn what_was_admitted_reaches_the_region_without_another_request() {
    let region = region(100);
    let site = Site::before(region.address(), &[]);
    for _ in 0..5 {
        assert_eq!(site.status("/", &[(HEADER, "a")]), 200);
    }
    wait_until("the books have every hit", || region.hits() == 5);
}

#[test]
fn two_instances_share_one_limit() {
    let region = region(10);
    let sites = [
        Site::before(region.address(), &[]),
        Site::before(region.address(), &[]),
    ];
    let admitted = (0..30)
        .filter(|n| sites[n % 2].status("/", &[(HEADER, "a")]) == 200)
        .count();
    assert_eq!(admitted, 10);
    wait_until("the books have every hit", || region.hits() == 10);
}

#[test]
fn requests_that_wait_do_so_side_by_side() {
    let region = region(5);
    let site = Site::before(region.address(), &[]);
    let asked: Vec<_> = (0..20).map(|_| site.ask("/", &[(HEADER, "a")])).collect();
    let answers = asked
        .iter()
        .map(|one| one.recv().expect("an answer").expect("a response"));
    let admitted = answers.filter(|answer| answer.status() == 200).count();
    assert_eq!(admitted, 5);
}

#[test]
fn without_a_region_that_answers_requests_go_on_and_are_counted_as_leaked_once_it_is_back() {
    let region = Region::start(vec![per_header("per-key", HEADER, 1_000, 3_600)]);
    let site = Site::before(
        region.address(),
        &[("WEIR_SETTINGS", r#"{"timeout_ms": 200}"#)],
    );
    assert_eq!(site.status("/", &[(HEADER, "a")]), 200);
    wait_until("the first is counted", || region.hits() == 1);
    region.set_manner(Manner::Instead(503, Vec::new()));
    let mut sent = 0;
    let calls = region.call_count();
    while region.call_count() < calls + 4 {
        sent += 1;
        let key = format!("new-{sent}");
        assert_eq!(site.status("/", &[(HEADER, &key)]), 200);
    }
    region.set_manner(Manner::Good);
    wait_until("the region hears of the leaks", || {
        let _ = site.status("/", &[]);
        region.leaked() > 0
    });
    wait_until("the books have every hit", || region.hits() == sent + 1);
}

#[test]
fn what_failed_behind_can_be_given_back_and_a_client_told_of_its_quota() {
    let mut rule = patient(per_header("per-key", HEADER, 2, 3_600));
    rule.refund = vec![StatusMatch::Class(5)];
    rule.quota_headers = QuotaHeaders {
        when: TellWhen::Always,
        ..QuotaHeaders::default()
    };
    let region = Region::start(vec![rule]);
    let site = Site::before(region.address(), &[]);
    for _ in 0..5 {
        assert_eq!(site.status("/503", &[(HEADER, "a")]), 503);
    }
    let told = site.get("/", &[(HEADER, "a")]).expect("a response");
    assert_eq!(told.status(), 200);
    assert!(told.headers().contains_key("ratelimit"), "{told:?}");
    assert_eq!(&**told.body(), b"from behind");
}

#[test]
fn an_address_is_the_one_that_the_server_says_and_no_other() {
    let region = Region::start(vec![patient(per_address("per-address", 1, 3_600))]);
    let site = Site::before(
        region.address(),
        &[("WEIR_CLIENT_ADDRESS", "X-Real-Address")],
    );
    for (address, forwarded, status) in [
        ("192.0.2.7", "198.51.100.1", 200),
        ("192.0.2.7:443", "198.51.100.2", 429),
        ("2001:db8::1", "198.51.100.3", 200),
        ("[2001:db8::1]:443", "198.51.100.4", 429),
        ("nobody", "198.51.100.5", 200),
    ] {
        let headers = [("x-real-address", address), ("x-forwarded-for", forwarded)];
        assert_eq!(site.status("/", &headers), status, "{address}");
    }
}

#[test]
fn a_denied_call_of_grpc_gets_a_status_of_its_own() {
    let region = Region::start(vec![patient(per_window("all", 1, 3_600))]);
    let site = Site::before(region.address(), &[]);
    let call = [("content-type", "application/grpc+proto")];
    assert_eq!(site.status("/", &call), 200);
    let denied = site.get("/", &call).expect("a response");
    assert_eq!(denied.status(), 200);
    assert_eq!(
        denied
            .headers()
            .get("grpc-status")
            .map(|value| value.as_bytes()),
        Some(&b"8"[..])
    );
    assert!(denied.headers().contains_key("grpc-message"));
    assert_eq!(site.handled(), 1);
}

#[test]
fn settings_that_are_wrong_are_told_with_every_request() {
    for (variables, why) in [
        (&[][..], "WEIR_REGION must be an address"),
        (
            &[("WEIR_REGION", "weir.internal:8090")],
            "WEIR_REGION must be an address",
        ),
        (
            &[
                ("WEIR_REGION", "http://127.0.0.1:1"),
                ("WEIR_SETTINGS", r#"{"timeout_ms": 0}"#),
            ],
            "`timeout_ms` is 0, must be 1 to 60000",
        ),
        (
            &[
                ("WEIR_REGION", "http://127.0.0.1:1"),
                ("WEIR_CLIENT_ADDRESS", "x y"),
            ],
            "WEIR_CLIENT_ADDRESS names a header",
        ),
    ] {
        let site = Site::with(variables);
        for _ in 0..2 {
            let error = site.get("/", &[]).expect_err("no response");
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(site.handled(), 0);
    }
}
