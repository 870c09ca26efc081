//! Durable Objects as regions under a real global aggregator: one limit over all, books
//! that agree whoever dies, and rules from above.

use std::time::Duration;

use weir_tests::aggregator::Aggregator;
use weir_tests::delay::Delay;
use weir_tests::http::{self, get};
use weir_tests::light::{Light, Traffic};
use weir_tests::load::{Load, Until};
use weir_tests::objects::{PROBE, admit, below, hits_of, put_rules, upstream, wait_for_rules};
use weir_tests::rules::per_header;
use weir_tests::spray::{Spray, admitted};
use weir_tests::upstream::Upstream;
use weir_tests::wait::{wait_until, wait_within};
use weir_tests::workerd::{Setup, Workerd, compiled};

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3_600;

/// Half of the way there and back again.
const EACH_WAY: Duration = Duration::from_millis(20);

/// How long it may take until rules are in force.
const WITHIN: Duration = Duration::from_secs(2);

/// Rules, as a file has them, with the one that says whether they are there.
fn file(rules: &str) -> String {
    format!("version: 1\ndomain: api.example.com\nrules:\n{PROBE}{rules}")
}

/// A limit that no test reaches, over all regions.
fn ample() -> String {
    file(
        "  - { name: ample, key: header.x-api-key, limit: 1000000, window: 1d, \
         algorithm: fixed_window, scope: global, hold: 1s }\n",
    )
}

fn global(rules: &str) -> Aggregator {
    Aggregator::start_with(rules, &["--region", "global"])
}

#[test]
fn a_global_limit_is_one_over_objects_and_a_native_region_and_others_are_each_regions_own() {
    const LIMIT: u64 = 600;
    const ISOLATES: usize = 2;
    const CONNECTIONS: usize = 3;
    let rules = file(&format!(
        "  - {{ name: all, key: header.x-api-key, limit: {LIMIT}, window: 1d, \
         algorithm: fixed_window, scope: global, hold: 200ms }}\n  \
         - {{ name: here, key: header.x-team, limit: 5, window: 1d, hold: 1s }}\n"
    ));
    let global = global(&rules);
    let link = Delay::start(global.address(), EACH_WAY);
    let origin = Upstream::start();
    let setup = below(link.address(), "cloud", origin.address()).isolates(ISOLATES);
    let workerd = Workerd::start(setup);
    let url = format!("http://{}", link.address());
    let mut native = Aggregator::prepare(&["--upstream", &url, "--region", "native"]);
    native.restart();
    wait_for_rules(&workerd);
    let source = Light::start(
        native.address(),
        Traffic {
            keys: vec!["one".to_owned()],
            per_second: 300,
        },
    );
    let load = Load {
        addresses: workerd.addresses().to_vec(),
        connections: CONNECTIONS,
        pause: Duration::from_millis(15),
        until: Until::Requests(5 * LIMIT / (ISOLATES * CONNECTIONS) as u64),
    };
    let request = get("/", &[("x-api-key", "one")]);
    let tally = load.run(|_, _| request.clone());
    assert_eq!(tally.failed, 0, "{tally:?}");
    wait_until("the native region was asked as much", || {
        source.sums().decided >= 5 * LIMIT
    });
    source.rest();
    let (here, there) = (tally.status(200), source.sums().admitted);
    eprintln!("{here} and {there} of {LIMIT}");
    let error = (here + there).abs_diff(LIMIT) * 100 / LIMIT;
    assert!(error <= 5, "{here} and {there} of {LIMIT}");
    assert!(
        here > LIMIT / 10 && there > LIMIT / 10,
        "{here} and {there}"
    );
    wait_until("the books above have all of it", || {
        hits_of(&global, "all") == Some(here + there)
    });
    let team = |_: usize| workerd.get("/", &[("x-team", "t")]).status;
    let told: Vec<u16> = (0..6).map(team).collect();
    assert_eq!(told, [200, 200, 200, 200, 200, 429]);
    let check = br#"{"rule":"here","key":"t"}"#;
    let headers = [("content-type", "application/json")];
    let check = http::request("POST", "/v1/ratelimit/check", &headers, check);
    let allowed = |_: usize| {
        let answer = http::send(native.address(), &check).expect("an answer");
        answer.text().contains("\"allowed\":true")
    };
    assert_eq!((0..6).map(allowed).filter(|allowed| *allowed).count(), 5);
    assert_eq!(hits_of(&global, "here"), Some(0), "it is nobody else's");
}

#[test]
fn a_global_aggregator_killed_under_load_has_all_that_objects_acknowledged_once() {
    let mut global = global(&ample());
    let link = Delay::start(global.address(), EACH_WAY);
    let origin = Upstream::start();
    let setup = below(link.address(), "cloud", origin.address()).isolates(2);
    let workerd = Workerd::start(setup);
    wait_for_rules(&workerd);
    let probed = workerd.addresses().len() as u64;
    let request = get("/", &[("x-api-key", "one")]);
    let spray = Spray::start(workerd.addresses().to_vec(), 4, 100, request);
    let wait_for_more = || {
        let before = workerd.books("hits");
        wait_until("more is acknowledged", || {
            workerd.books("hits") > before.map(|hits| hits + 100)
        });
    };
    for _ in 0..2 {
        wait_for_more();
        global.kill();
        wait_for_more();
        assert!(upstream(&workerd, "waiting") > Some(0));
        global.restart();
    }
    // Where nobody refuses and nobody answers it is no different.
    wait_for_more();
    link.fall_silent();
    wait_for_more();
    assert!(upstream(&workerd, "waiting") > Some(0));
    link.heal();
    wait_for_more();
    let admitted = admitted(&spray.stop());
    wait_until("the objects have all that was admitted", || {
        workerd.get("/", &[]).status == 200 && workerd.books("hits") == Some(admitted + probed)
    });
    wait_until("so has the global aggregator", || {
        hits_of(&global, "ample") == Some(admitted)
    });
    wait_until("nothing waits", || upstream(&workerd, "waiting") == Some(0));
    assert_eq!(hits_of(&global, "ample"), Some(admitted));
    assert_eq!(upstream(&workerd, "out_of_order"), Some(0));
}

#[test]
fn hits_that_wait_for_an_aggregator_that_is_away_outlive_a_kill_and_count_once() {
    let mut global = global(&ample());
    let origin = Upstream::start();
    let setup = below(global.address(), "cloud", origin.address());
    let mut workerd = Workerd::start(setup);
    wait_for_rules(&workerd);
    let mut admitted = admit(&workerd, "one", 10);
    wait_until("they are above", || {
        hits_of(&global, "ample") == Some(admitted)
    });
    global.kill();
    for life in 1..=2 {
        admitted += admit(&workerd, "one", 10);
        wait_until("they are in the books of the objects", || {
            workerd.books("hits") == Some(1 + admitted)
        });
        workerd.restart();
        assert_eq!(workerd.books("hits"), Some(1 + admitted), "life {life}");
        assert!(upstream(&workerd, "waiting") > Some(0), "life {life}");
        // The isolate starts without rules. The objects have kept theirs.
        wait_for_rules(&workerd);
    }
    global.restart();
    admitted += admit(&workerd, "one", 1);
    wait_until("all of it is above", || {
        hits_of(&global, "ample") >= Some(admitted)
    });
    wait_until("nothing waits", || upstream(&workerd, "waiting") == Some(0));
    assert_eq!(hits_of(&global, "ample"), Some(admitted));
    assert_eq!(workerd.books("hits"), Some(1 + admitted));
}

#[test]
fn rules_put_above_are_in_force_within_two_seconds_whatever_was_deployed_or_is_put_here() {
    let limited = |limit: u64| {
        file(&format!(
            "  - {{ name: per-key, key: header.x-api-key, limit: {limit}, window: 1d, hold: 1s }}\n"
        ))
    };
    let mut global = Aggregator::prepare(&["--region", "global"]);
    let origin = Upstream::start();
    // Newer than any that the aggregator above will number.
    let deployed = compiled(
        u64::MAX / 2,
        vec![per_header("per-key", "x-api-key", 3, LONG)],
    );
    let above = format!("http://{}", global.address());
    let setup = Setup::new(&deployed, origin.address())
        .variable("WEIR_SHARDS", "1")
        .variable("WEIR_UPSTREAM_URL", &above)
        .variable("WEIR_UPSTREAM_REGION", "cloud");
    let mut workerd = Workerd::start(setup);
    // Until the aggregator above was heard, the isolate has those that it came with.
    let told = workerd.statuses("zero", 8);
    assert_eq!(told.last(), Some(&429), "{told:?}");
    global.set_rules(&limited(1_000));
    global.restart();
    // With a rule file nobody else may change them. What was in it is on record.
    global.stop();
    std::fs::remove_file(global.rules_file()).expect("the file is there");
    global.restart();
    wait_for_rules(&workerd);
    assert_eq!(workerd.statuses("one", 4), [200; 4]);
    let refused = workerd.put_rules(&deployed);
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(
        refused
            .text()
            .contains(&format!("rules are set above, at {above}"))
    );
    let put = put_rules(&global, &limited(4));
    assert!(put.status < 300, "{}", put.text());
    let denied = || (workerd.get("/", &[("x-api-key", "one")]).status == 429).then_some(());
    assert!(
        wait_within(WITHIN, denied).is_some(),
        "not within {WITHIN:?}"
    );
    // Another in its place begins to number anew. What it says is in force, also when it
    // is away and the objects start again.
    global.kill();
    let mut other = Aggregator::prepare(&["--region", "global"]);
    other.set_rules(&limited(40));
    other.move_to(global.address());
    other.restart();
    wait_until("what the other one says is in force", || {
        workerd.statuses("two", 8) == [200; 8]
    });
    other.kill();
    workerd.restart();
    let told = workerd.statuses("three", 60);
    let admitted = told.iter().filter(|status| **status == 200).count();
    assert!((30..=50).contains(&admitted), "{told:?}");
}
