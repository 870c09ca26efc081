//! What Envoy's clients are answered, and what responses change: the real module, with
//! the real Ledger behind it.

#![expect(
    clippy::disallowed_methods,
    reason = "what is left of a window on a real Envoy is told by the real clock"
)]

use std::time::{SystemTime, UNIX_EPOCH};

use limiter::rule::{
    Cost, HeaderForm, QuotaHeaders, Response as OwnAnswer, Rule, StatusMatch, TellWhen,
};
use weir_tests::envoy::{Envoy, weir_filter};
use weir_tests::envoy_config::Setup;
use weir_tests::http::{self, Response};
use weir_tests::region::Region;
use weir_tests::rules::{per_header, per_window};
use weir_tests::upstream::{self, Upstream};
use weir_tests::wait::wait_until;

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3600;

/// An Envoy of one worker before a service that answers with the status and the cost
/// that its path says, as in `/503/7`.
struct World {
    region: Region,
    envoy: Envoy,
    _service: Upstream,
}

impl World {
    fn new(rules: Vec<Rule>) -> Self {
        Self::with("", rules)
    }

    fn with(config: &str, rules: Vec<Rule>) -> Self {
        let region = Region::start(rules);
        let service = Upstream::answering(|request| {
            let path = request.line.split(' ').nth(1).unwrap_or_default();
            let mut parts = path.split('/').skip(1);
            let status = parts.next().and_then(|status| status.parse().ok());
            let cost = parts.next().unwrap_or_default();
            upstream::response(status.unwrap_or(200), &[("x-cost", cost)], b"")
        });
        let setup = Setup::new(weir_filter(config))
            .aggregator(region.address())
            .upstream(service.address());
        let envoy = Envoy::start(setup);
        wait_until("both VMs run the rules", || {
            region.sources_up_to_date() == 2
        });
        Self {
            region,
            envoy,
            _service: service,
        }
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.envoy.get(path, headers)
    }

    fn status(&self, path: &str, key: &str) -> u16 {
        self.get(path, &[("x-api-key", key)]).status
    }

    /// How many of so many requests are let through to the service.
    fn admitted(&self, requests: usize, path: &str, key: &str) -> usize {
        let statuses = (0..requests).map(|_| self.status(path, key));
        statuses.filter(|status| *status != 429).count()
    }

    /// Waits until so many hits are in the books, those given back not counted.
    fn wait_for_books(&self, hits: u64) {
        wait_until("the books say so", || {
            self.region.hits() - self.region.returned() == hits
        });
    }
}

fn per_key(limit: u64, change: impl Fn(&mut Rule)) -> Vec<Rule> {
    let mut rule = per_header("per-key", "x-api-key", limit, LONG);
    change(&mut rule);
    vec![rule]
}

#[test]
fn a_request_costs_what_its_header_says_and_nonsense_costs_the_default() {
    let world = World::new(per_key(100, |rule| {
        rule.cost = Cost::RequestHeader {
            name: "x-cost".into(),
            max: 50,
            default: 5,
        };
    }));
    let spend = |cost: &str| {
        let headers = [("x-api-key", "a"), ("x-cost", cost)];
        world.get("/", &headers).status
    };
    assert_eq!(spend("30"), 200);
    assert_eq!(spend("9999999999999999999999"), 200, "the most: 50");
    assert_eq!(spend("-1"), 200, "the default: 5");
    assert_eq!(spend("16"), 429, "15 are left");
    assert_eq!(world.status("/", "a"), 200, "none at all: 5");
    assert_eq!(spend("10"), 200);
    assert_eq!(spend("1"), 429);
    world.wait_for_books(100);
}

#[test]
fn what_a_response_costs_is_spent_when_it_is_there() {
    let world = World::new(per_key(100, |rule| {
        rule.cost = Cost::ResponseHeader {
            name: "x-cost".into(),
            max: 60,
            upfront: 10,
            default: 10,
        };
    }));
    assert_eq!(world.status("/200/3", "a"), 200, "7 are given back");
    assert_eq!(world.status("/200/nonsense", "a"), 200, "10 stay spent");
    assert_eq!(world.status("/200/77", "a"), 200, "60 at the most");
    assert_eq!(world.status("/200/60", "a"), 200, "27 were left, 10 fit");
    assert_eq!(world.status("/200/1", "a"), 429, "it is overspent");
    world.wait_for_books(3 + 10 + 60 + 60);
    assert_eq!(
        world.status("/200/1", "a"),
        429,
        "by the region's word, too"
    );
    assert_eq!(world.status("/200/1", "b"), 200);
}

#[test]
fn a_request_that_fails_is_given_back() {
    let world = World::new(per_key(5, |rule| {
        rule.refund = vec![StatusMatch::One(404), StatusMatch::Class(5)];
    }));
    assert_eq!(world.admitted(40, "/503", "a"), 40);
    assert_eq!(world.admitted(40, "/404", "a"), 40);
    world.wait_for_books(0);
    assert_eq!(world.admitted(20, "/403", "a"), 5, "this one is no refund");
    world.wait_for_books(5);
}

#[test]
fn what_was_reported_before_the_response_came_is_given_back_all_the_same() {
    let mut rule = per_header("per-key", "x-api-key", 5, LONG);
    rule.refund = vec![StatusMatch::Class(5)];
    let region = Region::start(vec![rule]);
    let slow = Upstream::answering(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        upstream::response(500, &[], b"")
    });
    let setup = Setup::new(weir_filter(""))
        .aggregator(region.address())
        .upstream(slow.address());
    let envoy = Envoy::start(setup);
    wait_until("both VMs run the rules", || {
        region.sources_up_to_date() == 2
    });
    assert_eq!(envoy.get("/", &[("x-api-key", "a")]).status, 500);
    wait_until("the hit is in the books, and given back", || {
        (region.hits(), region.returned()) == (1, 1)
    });
}

#[test]
fn a_client_that_is_allowed_is_told_of_its_quota_where_the_rule_says_so() {
    let always = |form| {
        per_key(10, move |rule| {
            rule.quota_headers = QuotaHeaders {
                form,
                when: TellWhen::Always,
            };
        })
    };
    let world = World::new(always(HeaderForm::Both));
    let told = world.get("/", &[("x-api-key", "a")]);
    assert_eq!(told.status, 200);
    assert_eq!(
        told.header("ratelimit-policy"),
        Some("\"per-key\";q=10;w=86400")
    );
    let state = told.header("ratelimit").expect("a state");
    assert!(state.starts_with("\"per-key\";r=9;t="), "{state}");
    assert_eq!(
        told.header("x-ratelimit-limit"),
        Some("10, 10;w=86400;name=\"per-key\"")
    );
    assert_eq!(told.header("x-ratelimit-remaining"), Some("9"));
    let reset = told.header("x-ratelimit-reset").expect("a reset");
    assert!((1..=LONG).contains(&reset.parse().expect("seconds")));
    assert_eq!(told.header("retry-after"), None);
    assert_eq!(world.get("/", &[]).header("ratelimit"), None, "no rule");

    world.region.set_rules(always(HeaderForm::XRateLimit));
    wait_until("the other form is in force", || {
        let told = world.get("/", &[("x-api-key", "b")]);
        told.header("ratelimit").is_none() && told.header("x-ratelimit-limit").is_some()
    });
    world.region.set_rules(per_key(10, |_| {}));
    wait_until("nothing is told any more", || {
        let told = world.get("/", &[("x-api-key", "c")]);
        told.header("x-ratelimit-limit").is_none()
    });
}

#[test]
fn a_denied_client_is_told_in_the_form_that_its_rule_has() {
    let form = |form| move |rule: &mut Rule| rule.quota_headers.form = form;
    let denied = |rules| {
        let world = World::new(rules);
        assert_eq!(world.status("/", "a"), 200);
        let denied = world.get("/", &[("x-api-key", "a")]);
        assert_eq!(denied.status, 429);
        denied
    };
    let old = denied(per_key(1, form(HeaderForm::XRateLimit)));
    assert_eq!(old.header("ratelimit"), None);
    assert_eq!(old.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(old.header("x-ratelimit-reset"), old.header("retry-after"));
    let none = denied(per_key(1, form(HeaderForm::None)));
    assert_eq!(none.header("ratelimit"), None);
    assert_eq!(none.header("x-ratelimit-limit"), None);
    assert!(none.header("retry-after").is_some());
}

#[test]
fn retry_after_is_no_earlier_than_the_truth() {
    let world = World::new(vec![per_window("all", 3, LONG)]);
    assert_eq!(world.admitted(8, "/", "a"), 3);
    world.wait_for_books(3);
    let denied = world.get("/", &[]);
    let wait = denied.header("retry-after").expect("a wait");
    let wait: u64 = wait.parse().expect("seconds");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let left = LONG - now.expect("after 1970").as_secs() % LONG;
    assert!(
        wait + 2 >= left,
        "{wait} s, {left} s are left of the window"
    );
}

#[test]
fn a_denied_call_of_grpc_gets_grpc_s_own_status() {
    let world = World::new(per_key(1, |rule| {
        rule.response = Some(OwnAnswer {
            status: 503,
            body: None,
            headers: vec![("x-why".into(), "limit".into())],
        });
    }));
    let call = |content_type: &str| {
        let headers = [("x-api-key", "a"), ("content-type", content_type)];
        let bytes = http::request("POST", "/pkg.Service/Call", &headers, b"\0\0\0\0\0");
        http::send(world.envoy.address(), &bytes).expect("Envoy answers")
    };
    assert_eq!(call("application/grpc").status, 200);
    for content_type in ["application/grpc", "application/grpc+proto"] {
        let denied = call(content_type);
        assert_eq!(denied.status, 200, "{denied:?}");
        assert_eq!(denied.header("grpc-status"), Some("8"), "{denied:?}");
        let message = denied.header("grpc-message").expect("a message");
        assert!(
            message.starts_with("the quota of rule per-key is spent"),
            "{message}"
        );
        assert_eq!(denied.header("content-type"), Some("application/grpc"));
        assert!(denied.header("ratelimit").is_some() && denied.body.is_empty());
        assert_eq!(denied.header("x-why"), Some("limit"));
    }
    let plain = call("application/json");
    assert_eq!(plain.status, 503, "{plain:?}");
    assert_eq!(plain.header("grpc-status"), None);
}

#[test]
fn who_asks_is_told_why_each_request_was_decided_as_it_was() {
    let config = r#"{"explain_header": "x-weir-explain", "explain_log": true}"#;
    let world = World::with(config, per_key(2, |_| {}));
    let why = |headers: &[(&str, &str)]| {
        let answer = world.get("/why", headers);
        let why = answer.header("x-weir-explain").expect("a reason");
        (answer.status, why.to_owned())
    };
    let key = [("x-api-key", "a")];
    let (status, line) = why(&key);
    assert_eq!(status, 200);
    assert!(
        line.starts_with("\"per-key\";verdict=allow;tier="),
        "{line}"
    );
    assert!(line.contains(";remaining=1;age_ms="), "{line}");
    assert_eq!(why(&key).0, 200);
    let (status, line) = why(&key);
    assert_eq!(status, 429);
    assert!(line.starts_with("\"per-key\";verdict=deny;tier="), "{line}");
    assert!(why(&[]).1.starts_with("none;verdict=pass"));
    wait_until("the access log says it, too", || {
        let log = std::fs::read_to_string(world.envoy.file("explain.log"));
        let log = log.unwrap_or_default();
        let has = |start: &str| log.lines().any(|line| line.starts_with(start));
        has("200 \"per-key\";verdict=allow;tier=")
            && has("429 \"per-key\";verdict=deny;tier=")
            && has("200 none;verdict=pass")
    });
    assert!(world.envoy.reconfigure("{}"));
    wait_until("nobody is told any more", || {
        world.get("/", &key).header("x-weir-explain").is_none()
    });
}

#[test]
fn a_held_request_settles_as_any_other() {
    let world = World::new(per_key(5, |rule| {
        rule.refund = vec![StatusMatch::Class(5)];
        rule.consistency = limiter::rule::Consistency::Exact;
    }));
    assert_eq!(world.admitted(10, "/500", "a"), 10);
    world.wait_for_books(0);
    assert_eq!(world.admitted(3, "/200", "a"), 3);
    world.wait_for_books(3);
    wait_until("they were held", || {
        world.envoy.metrics().sum_or_zero("weir_held_total", &[]) > 0.5
    });
}
