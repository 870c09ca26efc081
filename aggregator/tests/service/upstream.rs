//! Regions of an aggregator above them.

use aggregator::auth::Token;
use serde_json::json;

use crate::{
    common::{
        client::{Response, check, get, metric, sync, until},
        messages::flush,
    },
    rules_client::put,
    server::{Place, TestServer},
};

const RULES: &str = "\
version: 1
domain: test
rules:
  - { name: wide, key: [header.x-key], limit: 1000000000, window: 365d, scope: global }
  - { name: three, key: [header.x-key], limit: 3, window: 365d, scope: global }
  - { name: here, key: [header.x-key], limit: 3, window: 365d }
";

/// One that regions add up to; it keeps its address when it starts again.
fn above() -> (Place, TestServer) {
    let mut place = Place::new();
    place.settings.rules = None;
    let server = crate::rules_client::ready(&place);
    put(&server, "", RULES);
    place.settings.listen = Some(server.address);
    (place, server)
}

fn region(name: &str, above: &TestServer) -> (Place, TestServer) {
    let mut place = Place::new();
    place.settings.rules = None;
    place.settings.region = Some(name.to_owned());
    place.settings.upstream = Some(format!("http://{}", above.address));
    let server = place.start();
    until("it is heard above", || {
        metric(server.address, "weir_upstream_reachable", "") == 1
    });
    (place, server)
}

fn spend(server: &TestServer, rule: &str, key: &str, cost: u64) -> Response {
    check(
        server.address,
        &json!({"rule": rule, "key": [key], "cost": cost}),
    )
}

fn hits(server: &TestServer, rule: &str) -> u64 {
    metric(server.address, "weir_hits_total", &format!("\"{rule}\""))
}

#[test]
fn a_global_limit_is_one_over_all_regions_and_another_is_each_regions_own() {
    let (_above, above) = above();
    let ((_eu, eu), (_us, us)) = (region("eu", &above), region("us", &above));
    until("all of it is admitted in one region", || {
        spend(&eu, "three", "k", 1);
        hits(&above, "three") == 3
    });
    until("the other hears of it", || {
        metric(us.address, "weir_upstream_waiting", "") == 0
            && spend(&us, "three", "k", 1).json()["allowed"] == false
    });
    assert!(
        hits(&above, "three") <= 4,
        "a hit at most is admitted unasked"
    );
    for server in [&eu, &us] {
        assert_eq!(spend(server, "here", "k", 3).json()["allowed"], true);
    }
    assert_eq!(hits(&above, "here"), 0);
}

#[test]
fn of_several_aggregators_above_the_one_that_answers_is_used() {
    let (_above, above) = above();
    let mut place = Place::new();
    place.settings.rules = None;
    place.settings.region = Some("eu".to_owned());
    // Nobody listens on the first of them.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = nobody.local_addr().unwrap();
    place.settings.upstream = Some(format!("http://{nobody},http://{}", above.address));
    let eu = place.start();
    sync(eu.address, &flush(1, "k", 5)).reply();
    until("it is told above", || hits(&above, "wide") == 5);
}

#[test]
fn two_regions_of_one_name_are_told_of() {
    let (_above, above) = above();
    let ((_one, one), (_other, other)) = (region("eu", &above), region("eu", &above));
    let mut sequence = 0;
    until("one of them has noticed", || {
        sequence += 1;
        for server in [&one, &other] {
            sync(server.address, &flush(sequence, "k", 1)).reply();
        }
        let noticed = |server: &TestServer| {
            metric(server.address, "weir_upstream_out_of_order_total", "") > 0
        };
        noticed(&one) || noticed(&other)
    });
}

#[test]
fn a_token_that_was_replaced_is_read_again_once_the_old_one_is_refused() {
    let mut global = Place::new();
    let (old, new) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = |token: &Token| {
        let sha256 = token.digest();
        format!("tokens:\n  - {{ name: eu, tenant: t, rights: [sync], sha256: \"{sha256}\" }}\n")
    };
    global.write_rules(RULES);
    global.settings.token_file = Some(global.write("tokens.yaml", &tokens(&old)));
    let above = global.launch();
    let mut place = Place::new();
    place.settings.rules = None;
    place.settings.region = Some("eu".to_owned());
    place.settings.upstream = Some(format!("http://{}", above.address));
    place.settings.upstream_token_file = Some(place.write("token", old.reveal()));
    let eu = place.start();
    let reachable = || metric(eu.address, "weir_upstream_reachable", "");
    until("it is heard", || reachable() == 1);
    global.write("tokens.yaml", &tokens(&new));
    until("the old token is refused", || reachable() == 0);
    place.write("token", new.reveal());
    until("the new one is read", || reachable() == 1);
}

#[test]
fn rules_that_are_put_in_a_region_are_in_force_in_all_of_them() {
    let (_above, above) = above();
    let ((_eu, eu), (_us, us)) = (region("eu", &above), region("us", &above));
    let more = RULES.replace("limit: 3", "limit: 5");
    let answer = put(&eu, "", &more);
    assert_eq!(answer.header("etag"), Some("\"2\""), "{}", answer.text());
    let told = get(us.address, "/v1/rules");
    assert_eq!((told.header("etag"), told.text()), (Some("\"2\""), more));
    until("both have them", || {
        [&eu, &us]
            .iter()
            .all(|server| metric(server.address, "weir_rules_revision", "") == 2)
    });
    assert_eq!(spend(&us, "here", "k", 5).json()["allowed"], true);
    let refused = put(&eu, "", "version: 1\nrules: nonsense\n");
    assert_eq!(refused.status, 422, "{}", refused.text());
    let history = get(eu.address, "/v1/rules/history").json();
    assert_eq!(history["history"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_a_region_counts_while_nobody_above_answers_is_told_later_once() {
    let (global, above) = above();
    let (_eu, eu) = region("eu", &above);
    let first = sync(eu.address, &flush(1, "k", 100)).reply();
    assert_eq!(first.acks.len(), 1);
    until("it is told", || hits(&above, "wide") == 100);
    above.stop();
    until("it is noticed", || {
        metric(eu.address, "weir_upstream_reachable", "") == 0
    });
    sync(eu.address, &flush(2, "k", 20)).reply();
    assert_eq!(spend(&eu, "wide", "k", 7).json()["allowed"], true);
    assert_eq!(put(&eu, "", RULES).problem(), "nobody-above");
    let above = global.start();
    until("all of it is told", || hits(&above, "wide") == 127);
    assert!(metric(eu.address, "weir_upstream_alone_hits_total", "") >= 27);
    until("it is noticed", || {
        metric(eu.address, "weir_upstream_reachable", "") == 1
    });
    assert_eq!(hits(&above, "wide"), 127);
    assert!(metric(above.address, "weir_leaked_hits_total", "\"wide\"") >= 27);
}

#[test]
fn a_region_that_ends_has_told_all_it_acknowledged_and_goes_on_when_it_starts_again() {
    let (_above, above) = above();
    let (place, eu) = region("eu", &above);
    sync(eu.address, &flush(1, "k", 100)).reply();
    eu.stop();
    assert_eq!(hits(&above, "wide"), 100);
    let eu = place.start();
    sync(eu.address, &flush(2, "k", 11)).reply();
    until("more is told", || hits(&above, "wide") == 111);
    assert_eq!(hits(&eu, "wide"), 111);
}
