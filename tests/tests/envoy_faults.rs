//! Whatever clients, operators and aggregators do, the filter goes on working: it
//! lets requests through, counts them, and its VM is never lost.

use std::time::Duration;

use weir_tests::envoy::{Envoy, weir_filter};
use weir_tests::envoy_config::Setup;
use weir_tests::http::{self, get, request};
use weir_tests::process::free_address;
use weir_tests::region::{Manner, Region};
use weir_tests::rules::{per_header, per_window};
use weir_tests::upstream::{Upstream, response};
use weir_tests::wait::{wait_until, wait_within};

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3600;

/// Short intervals, so that faults come fast.
const HASTY: &str = r#"{"flush_interval_ms": 100, "timeout_ms": 300}"#;

fn envoy(region: &Region, config: &str) -> Envoy {
    let envoy = Envoy::with_weir(config, 1, Some(region.address()));
    wait_until("both VMs run the rules", || {
        region.sources_up_to_date() == 2
    });
    envoy
}

/// A VM that was lost has left a trace in Envoy's own metrics and its log.
fn assert_unharmed(envoy: &Envoy) {
    let log = envoy.log();
    for trace in [
        "panicked",
        "Uncaught RuntimeError",
        "wasm trap",
        "Proxy-Wasm plugin in-VM backtrace",
    ] {
        assert!(!log.contains(trace), "the log says `{trace}`");
    }
    let reloads = envoy.metrics();
    assert_eq!(
        reloads.sum_or_zero("envoy_wasm_envoy_wasm_runtime_v8_vm_reload_success", &[]),
        0.0
    );
}

/// Whether every VM, of the worker and the main one, takes the region to be away;
/// or any at all, when asked for the opposite.
fn away(envoy: &Envoy) -> bool {
    let metrics = envoy.metrics();
    let away = metrics.sum_or_zero("weir_sources_away", &[]);
    let sources = metrics.sum_or_zero("weir_sources", &[]);
    away > 0.0 && sources >= 2.0 && away >= sources
}

/// The limit of two for this key is still kept.
fn assert_limits(envoy: &Envoy, key: &str) {
    let statuses: Vec<u16> = (0..3)
        .map(|_| envoy.get("/", &[("x-api-key", key)]).status)
        .collect();
    assert_eq!(statuses, [200, 200, 429], "for {key}");
}

#[test]
fn bytes_that_are_no_text_are_counted_like_any_others() {
    let region = Region::start(vec![
        per_header("per-key", "x-api-key", 2, LONG),
        per_header("per-agent", "user-agent", 1_000, LONG),
    ]);
    let envoy = envoy(&region, HASTY);
    let send = |bytes: &[u8]| {
        http::send(envoy.address(), bytes)
            .map(|answer| answer.status)
            .ok()
    };
    let odd = b"GET /\xff\xfe?q=\xc3\x28 HTTP/1.1\r\nhost: a\xffb\r\nx-api-key: \xff\xc0\x80\r\nuser-agent: \x80\r\ncookie: \xf5=\xff\r\n\r\n";
    let _ = send(odd);
    let value = b"GET / HTTP/1.1\r\nhost: a\r\nx-api-key: \xff\xc0\x80\r\nuser-agent: \x80\r\n\r\n";
    let statuses: Vec<_> = (0..3).map(|_| send(value)).collect();
    assert!(statuses.iter().all(Option::is_some), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&Some(429)), "{statuses:?}");
    for name in [b"x-\xff: 1".as_slice(), b"\xc3\x28: 1", b"x y: 1", b": 1"] {
        let lines: [&[u8]; 3] = [b"GET / HTTP/1.1\r\nhost: a\r\n", name, b"\r\n\r\n"];
        let _ = send(&lines.concat());
    }
    assert_limits(&envoy, "after");
    assert_unharmed(&envoy);
}

#[test]
fn a_header_of_sixty_kilobytes_is_a_key_like_any_other() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 2, LONG)]);
    let envoy = envoy(&region, HASTY);
    assert_limits(&envoy, &"k".repeat(60_000));
    let many: Vec<String> = (0..90).map(|n| format!("x-{n}")).collect();
    let headers: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "v")).collect();
    assert_eq!(envoy.get("/", &headers).status, 200);
    assert_limits(&envoy, "after");
    assert_unharmed(&envoy);
}

#[test]
fn a_request_with_a_body_reaches_the_service_whole() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 2, LONG)]);
    let upstream = Upstream::answering(|request| response(200, &[], &request.body));
    let setup = Setup::new(weir_filter(HASTY))
        .aggregator(region.address())
        .upstream(upstream.address());
    let envoy = Envoy::start(setup);
    wait_until("both VMs run the rules", || {
        region.sources_up_to_date() == 2
    });
    let body = vec![b'x'; 300_000];
    let post = request("POST", "/", &[("x-api-key", "a")], &body);
    let statuses: Vec<(u16, bool)> = (0..3)
        .map(|_| http::send(envoy.address(), &post).expect("an answer"))
        .map(|answer| (answer.status, answer.body == body))
        .collect();
    assert_eq!(statuses, [(200, true), (200, true), (429, false)]);
    assert_eq!(upstream.seen(), 2);
}

#[test]
fn a_bad_configuration_is_refused_and_the_old_one_stays() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 2, LONG)]);
    let envoy = envoy(&region, HASTY);
    for bad in [r#"{"clutser": "x"}"#, r#"{"timeout_ms": 0}"#, "[]", "\u{1}"] {
        assert!(!envoy.reconfigure(bad), "{bad}");
    }
    let log = envoy.log();
    assert!(
        log.contains("configuration refused: unknown field `clutser`, expected one of `cluster`")
    );
    assert!(log.contains("configuration refused: `timeout_ms` is 0, must be 1 to 60000"));
    assert_limits(&envoy, "after");
}

#[test]
fn a_new_configuration_keeps_the_counts_and_flushes_once() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 2, LONG)]);
    let envoy = envoy(&region, HASTY);
    assert_limits(&envoy, "before");
    assert!(envoy.reconfigure(r#"{"flush_interval_ms": 100, "token": "s3cret"}"#));
    let with_token = || {
        let calls = region.calls();
        calls.iter().any(|(call, _)| {
            call.headers
                .contains(&("authorization".into(), "Bearer s3cret".into()))
        })
    };
    wait_until("calls carry the new token", with_token);
    assert_eq!(envoy.get("/", &[("x-api-key", "before")]).status, 429);
    assert_limits(&envoy, "after");
    wait_until("every hit is in the books", || region.hits() == 4);
    let mut sources: Vec<u64> = region.calls().iter().map(|(_, sync)| sync.source).collect();
    sources.sort_unstable();
    sources.dedup();
    assert!(
        sources.len() <= 3,
        "{} sources: the VM was kept, but for the one that tries a configuration",
        sources.len()
    );
    assert_unharmed(&envoy);
}

#[test]
fn an_aggregator_that_answers_nonsense_changes_nothing() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 2, LONG)]);
    let envoy = envoy(&region, HASTY);
    let manners = [
        Manner::Instead(200, b"\xff\xfe not protobuf".to_vec()),
        Manner::Instead(200, Vec::new()),
        Manner::Instead(500, b"broken".to_vec()),
        Manner::Instead(204, Vec::new()),
        Manner::Instead(200, vec![0x0a; 3 << 20]),
        Manner::Instead(200, vec![0; 12 << 20]),
        Manner::Late(Duration::from_millis(600)),
        Manner::Stuck,
        Manner::Hangup,
    ];
    for (n, manner) in manners.into_iter().enumerate() {
        region.set_manner(manner);
        let calls = region.call_count();
        wait_until("it is called in spite of that", || {
            region.call_count() >= calls + 3
        });
        wait_until("the limit is the local one", || away(&envoy));
        for m in 0..5 {
            let answer = envoy.get("/", &[("x-api-key", &format!("bad-{n}-{m}"))]);
            assert_eq!(answer.status, 200, "manner {n}, request {m}");
        }
        let calls = region.call_count();
        wait_until("it is called in spite of that", || {
            region.call_count() >= calls + 3
        });
    }
    region.set_manner(Manner::Good);
    wait_until("every hit reaches the books once it answers again", || {
        region.hits() == 45
    });
    assert_limits(&envoy, "after");
    assert_unharmed(&envoy);
}

#[test]
fn without_an_aggregator_the_local_cap_holds_and_the_leak_is_counted() {
    let mut rule = per_header("per-key", "x-api-key", 1_000, LONG);
    rule.local_cap = 5;
    let region = Region::start(vec![rule]);
    let address = region.address();
    let envoy = envoy(&region, HASTY);
    region.set_manner(Manner::Hangup);
    wait_until("the VM takes the region to be away", || away(&envoy));
    let statuses: Vec<u16> = (0..8)
        .map(|_| envoy.get("/", &[("x-api-key", "a")]).status)
        .collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        5,
        "{statuses:?}"
    );
    let leaked = || {
        envoy
            .metrics()
            .sum_or_zero("weir_leaked_total", &[("rule", "per-key")])
    };
    wait_until("the leak is counted", || leaked() == 5.0);
    assert!(envoy.log().contains("the aggregator does not answer"));
    region.set_manner(Manner::Good);
    wait_until("the books learn of every hit", || {
        (region.hits(), region.leaked()) == (5, 5)
    });
    wait_until("the region is back", || !away(&envoy));
    assert_eq!(address, region.address());
    assert_unharmed(&envoy);
}

#[test]
fn an_unknown_cluster_or_one_that_refuses_is_an_absent_aggregator() {
    let unknown = Envoy::with_weir("", 1, None);
    let refusing = Envoy::with_weir(HASTY, 1, Some(free_address()));
    for envoy in [&unknown, &refusing] {
        let no_answer = || {
            envoy
                .metrics()
                .sum_or_zero("weir_sync_total", &[("outcome", "no_answer")])
        };
        wait_until("calls fail", || no_answer() >= 3.0);
        assert_eq!(envoy.get("/", &[]).status, 200);
        assert_unharmed(envoy);
    }
}

#[test]
fn a_held_request_waits_no_longer_than_its_rule_allows() {
    let mut rule = per_window("exact", 1_000, LONG);
    rule.consistency = limiter::rule::Consistency::Exact;
    rule.hold = limiter::rule::HOLD_DEFAULT;
    let region = Region::start(vec![rule]);
    let envoy = envoy(&region, r#"{"timeout_ms": 2000}"#);
    let mut connection = envoy.connect();
    assert_eq!(
        connection.send(&get("/", &[])).expect("an answer").status,
        200
    );
    region.set_manner(Manner::Late(Duration::from_millis(1_500)));
    connection
        .set_timeout(Duration::from_millis(1_000))
        .expect("a timeout");
    let answered = wait_within(Duration::ZERO, || connection.send(&get("/", &[])).ok());
    assert!(answered.is_some(), "still waiting after a second");
    assert_unharmed(&envoy);
}

#[test]
fn a_client_that_hangs_up_while_held_harms_nobody() {
    let mut rule = per_window("exact", 1_000_000, LONG);
    rule.consistency = limiter::rule::Consistency::Exact;
    let region = Region::start(vec![rule]);
    let envoy = envoy(&region, r#"{"timeout_ms": 2000}"#);
    region.set_manner(Manner::Late(Duration::from_millis(300)));
    for _ in 0..20 {
        let mut connection = envoy.connect();
        connection
            .set_timeout(Duration::from_millis(20))
            .expect("a timeout");
        let _ = connection.send(&get("/", &[]));
    }
    region.set_manner(Manner::Good);
    wait_until("requests pass again", || envoy.get("/", &[]).status == 200);
    assert_unharmed(&envoy);
}

#[test]
fn what_was_counted_is_flushed_when_envoy_ends() {
    let region = Region::start(vec![per_header("per-key", "x-api-key", 10_000, LONG)]);
    let config = r#"{"flush_interval_ms": 60000}"#;
    let mut envoy = Envoy::with_weir(config, 1, Some(region.address()));
    let in_force = || envoy.log().matches("rules in force: 1, revision 1").count();
    wait_until("both VMs run the rules", || in_force() == 2);
    for _ in 0..10 {
        assert_eq!(envoy.get("/", &[("x-api-key", "a")]).status, 200);
    }
    assert_eq!(region.hits(), 0, "the next flush is a minute away");
    envoy.process().terminate();
    wait_until("all ten are in the books", || region.hits() == 10);
}
