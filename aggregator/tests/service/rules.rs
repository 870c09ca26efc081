//! The rule file while the service runs.

use serde_json::json;

use crate::{
    common::{
        client::{check, metric, sync, until},
        messages::{RULES, flush},
    },
    server::{Place, TestServer},
};

fn limit_of_three(server: &TestServer) -> u64 {
    let asked = json!({"rule": "three", "key": ["a", "GET"]});
    check(server.address, &asked).json()["limit"]
        .as_u64()
        .unwrap()
}

#[test]
fn a_changed_rule_file_is_in_force_soon_and_is_carried_to_sources() {
    let place = Place::new();
    let server = place.start();
    sync(server.address, &flush(1, "a", 5)).reply();
    place.write_rules(&RULES.replace("limit: 3,", "limit: 4,"));
    until("the new limit is in force", || limit_of_three(&server) == 4);
    let reply = sync(server.address, &flush(1, "a", 5)).reply();
    assert_eq!(reply.rules_revision, 2);
    let carried = reply.rules.unwrap();
    assert!(carried.rules.iter().any(|rule| rule.limit == 4));
    // Counters of rules that stay, stay.
    assert_eq!(
        metric(server.address, "weir_hits_total", "rule=\"wide\""),
        5
    );
}

#[test]
fn a_bad_rule_file_is_refused_whole_and_the_rules_before_it_stay() {
    let place = Place::new();
    let server = place.start();
    let refused = || metric(server.address, "weir_rules_refused_total", "");
    place.write_rules(&RULES.replace("limit: 3,", "limit: 4, limitt: 5,"));
    until("it is refused", || refused() == 1);
    assert_eq!(limit_of_three(&server), 3);
    place.write_rules(&RULES.replace("limit: 3,", "limit: 6,"));
    until("a good one is taken again", || limit_of_three(&server) == 6);
    assert_eq!(refused(), 1);
    assert_eq!(metric(server.address, "weir_rules_revision", ""), 2);
}

#[test]
fn a_rule_file_that_says_the_same_in_other_words_is_the_same_revision() {
    let place = Place::new();
    let server = place.start();
    place.write_rules(&format!("# a word\n{RULES}"));
    place.write_rules(&format!("# another word\n{RULES}"));
    place.write_rules(&RULES.replace("limit: 3,", "limit: 4,"));
    until("a change is seen", || limit_of_three(&server) == 4);
    assert_eq!(metric(server.address, "weir_rules_revision", ""), 2);
}
