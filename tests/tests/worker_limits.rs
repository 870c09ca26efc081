//! Limits on real workerd: one isolate, and several that share one region of
//! Durable Objects.

use std::time::Duration;

use weir_tests::http::{self, get, request};
use weir_tests::load::{Load, Until};
use weir_tests::rules::{per_address, per_header};
use weir_tests::upstream::{Upstream, response};
use weir_tests::wait::wait_until;
use weir_tests::workerd::{Setup, Workerd, compiled};

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3_600;

#[test]
fn an_isolate_admits_the_limit_and_answers_the_rest_as_documented() {
    const LIMIT: u64 = 5;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", LIMIT, LONG)]);
    let workerd = Workerd::start(Setup::new(&rules, origin.address()));
    for n in 0..LIMIT {
        let answer = workerd.get("/a", &[("x-api-key", "one")]);
        assert_eq!(answer.status, 200, "request {n}: {}", answer.text());
    }
    let refused = workerd.get("/a", &[("x-api-key", "one")]);
    assert_eq!(refused.status, 429);
    let header = |name: &str| refused.header(name);
    assert_eq!(header("content-type"), Some("application/problem+json"));
    assert_eq!(header("ratelimit-policy"), Some("\"per-key\";q=5;w=86400"));
    assert!(header("retry-after").is_some(), "{refused:?}");
    assert!(refused.text().contains("violated-policies"), "{refused:?}");
    assert_eq!(workerd.get("/a", &[("x-api-key", "two")]).status, 200);
    assert_eq!(workerd.get("/a", &[]).status, 200);
    assert_eq!(origin.seen(), LIMIT + 2);
    wait_until("what was admitted is in the books", || {
        workerd.books("hits") == Some(LIMIT + 1)
    });
}

#[test]
fn keys_that_differ_late_or_in_foreign_letters_are_counted_apart() {
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", 1, LONG)]);
    let workerd = Workerd::start(Setup::new(&rules, origin.address()));
    let (long, longer) = ("k".repeat(64), "k".repeat(200));
    let keys = [
        long.clone(),
        format!("{long}a"),
        format!("{long}b"),
        format!("{longer}a"),
        format!("{longer}b"),
        "clé".to_owned(),
        "clè".to_owned(),
        format!("{longer}é"),
        format!("{longer}è"),
    ];
    for key in &keys {
        assert_eq!(workerd.statuses(key, 2), [200, 429], "{key}");
    }
}

#[test]
fn isolates_that_share_a_region_admit_one_limit_to_two_percent_at_ten_times_the_load() {
    const LIMIT: u64 = 600;
    const ISOLATES: usize = 4;
    const CONNECTIONS: usize = 3;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", LIMIT, LONG)]);
    let setup = Setup::new(&rules, origin.address()).isolates(ISOLATES);
    let workerd = Workerd::start(setup);
    let each = 10 * LIMIT / (ISOLATES * CONNECTIONS) as u64;
    let load = Load {
        addresses: workerd.addresses().to_vec(),
        connections: CONNECTIONS,
        pause: Duration::from_millis(5),
        until: Until::Requests(each),
    };
    let request = get("/", &[("x-api-key", "one")]);
    let tally = load.run(|_, _| request.clone());
    eprintln!("{tally:?}");
    assert_eq!(tally.failed, 0, "{tally:?}");
    assert_eq!(tally.answered(), tally.status(200) + tally.status(429));
    let admitted = tally.status(200);
    let about = LIMIT - LIMIT / 50..=LIMIT + LIMIT / 50;
    assert!(about.contains(&admitted), "{admitted} of {LIMIT}");
    wait_until("every admitted request is in the books, once", || {
        workerd.books("hits") == Some(admitted)
    });
}

#[test]
fn requests_that_wait_for_one_answer_are_all_told_of_it() {
    const LIMIT: u64 = 8;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", LIMIT, LONG)]);
    let workerd = Workerd::start(Setup::new(&rules, origin.address()));
    let load = Load {
        addresses: workerd.addresses().to_vec(),
        connections: 16,
        pause: Duration::ZERO,
        until: Until::Requests(1),
    };
    let request = get("/", &[("x-api-key", "all at once")]);
    let tally = load.run(|_, _| request.clone());
    assert_eq!(tally.status(200), LIMIT, "{tally:?}");
    assert_eq!(tally.status(429), 16 - LIMIT, "{tally:?}");
}

#[test]
fn limits_hold_however_many_objects_the_keys_are_spread_over() {
    const LIMIT: u64 = 3;
    let origin = Upstream::start();
    let rules = compiled(
        1,
        vec![
            per_header("per-key", "x-api-key", LIMIT, LONG),
            per_header("per-team", "x-team", 10, LONG),
        ],
    );
    for shards in ["1", "7", "64"] {
        let setup = Setup::new(&rules, origin.address()).variable("WEIR_SHARDS", shards);
        let workerd = Workerd::start(setup);
        let ask = |key: &str| {
            workerd
                .get("/", &[("x-api-key", key), ("x-team", "t")])
                .status
        };
        let told = ["a", "b", "c", "d"].map(|key| [key; 4].map(ask));
        let first = [200, 200, 200, 429];
        // Ten for the team: the last key gets what is left.
        assert_eq!(
            told,
            [first, first, first, [200, 429, 429, 429]],
            "{shards}"
        );
        wait_until("both rules' counts are in the books", || {
            workerd.books("hits") == Some(2 * 10)
        });
    }
}

#[test]
fn a_request_reaches_the_origin_as_it_came_and_its_answer_the_client() {
    let origin = Upstream::answering(|request| {
        let header = |name: &str| {
            let found = request.headers.iter().find(|(known, _)| known == name);
            found.map_or("none", |(_, value)| value.as_str()).to_owned()
        };
        let told = format!("{}, x: {}", request.line, header("x"));
        response(201, &[("x-told", &told)], &request.body)
    });
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", 5, LONG)]);
    let workerd = Workerd::start(Setup::new(&rules, origin.address()));
    let request = request("POST", "/a/b%20c?d=e", &[("x", "y")], b"hello");
    let answer = http::send(workerd.address(), &request).expect("an answer");
    assert_eq!((answer.status, answer.text()), (201, "hello".to_owned()));
    assert_eq!(
        answer.header("x-told"),
        Some("POST /a/b%20c?d=e HTTP/1.1, x: y")
    );
    let bound = Workerd::start(Setup::new(&rules, origin.address()).origin_inside());
    assert_eq!(bound.get("/", &[]).text(), "ok");
}

#[test]
fn a_client_is_who_cloudflare_says_and_not_who_it_says_itself() {
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_address("per-address", 1, LONG)]);
    let workerd = Workerd::start(Setup::new(&rules, origin.address()));
    let at = |address: &str, cf: bool| {
        let mut headers = vec![("cf-connecting-ip", address)];
        headers.extend(cf.then_some(("cf-blob", r#"{"colo": "VIE"}"#)));
        workerd.get("/", &headers).status
    };
    // Without Cloudflare's word nobody knows the address, and no rule applies.
    assert_eq!([at("192.0.2.1", false), at("192.0.2.1", false)], [200, 200]);
    assert_eq!([at("192.0.2.1", true), at("192.0.2.1", true)], [200, 429]);
    assert_eq!(
        [at("2001:db8::1", true), at("2001:db8::1", true)],
        [200, 429]
    );
}
