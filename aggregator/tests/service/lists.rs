//! Lists of keys, beside the rule file and put with rules.

use aggregator::config::RulesFrom;
use limiter::wire::SyncRequest;
use serde_json::{Value, json};

use crate::{
    common::client::{check, get, metric, send, sync, until},
    server::{Place, TestServer},
};

const RULES: &str = "\
version: 1
domain: d
tiers: [ { name: vip, when: { key_in: vip.txt } } ]
rules:
  - { name: r, key: [ header.x-key ], limit: 2, window: 1h, per_tier: { vip: { limit: 100 } } }
";

fn start(list: &str) -> (Place, TestServer) {
    let place = Place::new();
    place.write("vip.txt", list);
    place.write_rules(RULES);
    let server = place.start();
    (place, server)
}

fn tier(server: &TestServer, key: &str) -> Value {
    check(server.address, &json!({"rule": "r", "key": key})).json()["rule_tier"].clone()
}

fn revision(server: &TestServer) -> u64 {
    metric(server.address, "weir_rules_revision", "")
}

#[test]
fn whoever_is_in_the_list_is_of_its_tier_and_a_change_of_it_is_one_of_the_rules() {
    let (place, server) = start("# who pays\na\n");
    assert_eq!(
        (tier(&server, "a"), tier(&server, "b")),
        (json!("vip"), Value::Null)
    );
    assert_eq!(revision(&server), 1);
    place.write("vip.txt", "b\n");
    until("b is in the list", || tier(&server, "b") == "vip");
    assert_eq!((tier(&server, "a"), revision(&server)), (Value::Null, 2));
    let history = get(server.address, "/v1/rules/history").json();
    let summary = history["history"][0]["summary"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(summary, "other list vip.txt");
    // The text is the same: it names the list, and does not hold it.
    assert_eq!(get(server.address, "/v1/rules").body, RULES.as_bytes());
}

#[test]
fn a_list_that_is_gone_or_wrong_leaves_the_rules_as_they_were_and_is_taken_once_it_is_there() {
    let (place, server) = start("a\n");
    let refused = || metric(server.address, "weir_rules_refused_total", "");
    std::fs::remove_file(place.file("vip.txt")).unwrap();
    until("it is refused", || refused() == 1);
    assert_eq!(tier(&server, "a"), "vip");
    place.write("vip.txt", "c\n");
    until("the new list is taken", || tier(&server, "c") == "vip");
    assert_eq!((tier(&server, "a"), refused()), (Value::Null, 1));
}

#[test]
fn a_source_is_sent_a_list_once() {
    let (place, server) = start("a\nb\n");
    let asked = |revision: u64, lists: Vec<u64>| {
        let request = SyncRequest {
            source: 1,
            message: revision + 1,
            rules_revision: revision,
            lists,
            ..SyncRequest::default()
        };
        sync(server.address, &request).reply().rules
    };
    let rules = asked(0, Vec::new()).unwrap();
    let [list] = &rules.lists[..] else {
        panic!("{:?}", rules.lists)
    };
    assert_eq!((list.hashes.len(), list.kept), (16, false));
    assert_eq!(asked(rules.revision, vec![list.id]), None);
    place.write_rules(&RULES.replace("limit: 2", "limit: 3"));
    until("the change is in force", || revision(&server) == 2);
    let again = asked(1, vec![list.id]).unwrap();
    assert_eq!((again.lists[0].id, again.lists[0].kept), (list.id, true));
    assert!(again.lists[0].hashes.is_empty());
}

#[test]
fn rules_on_record_keep_their_lists_over_a_restart_without_the_file() {
    let (mut place, server) = start("a\n");
    assert_eq!(tier(&server, "a"), "vip");
    drop(server);
    std::fs::remove_file(place.file("vip.txt")).unwrap();
    place.settings.rules = None;
    let server = place.start();
    assert_eq!(
        (tier(&server, "a"), tier(&server, "b")),
        (json!("vip"), Value::Null)
    );
}

#[test]
fn rules_that_are_put_bring_their_lists_and_name_no_file_of_the_service() {
    let mut place = Place::new();
    place.write("vip.txt", "a\n");
    place.settings.rules_from = Some(RulesFrom::Api);
    let server = place.start();
    let put = |text: &str| send(server.address, "PUT", "/v1/rules", text.as_bytes());
    let refused = put(RULES);
    assert_eq!(refused.status, 422);
    let detail = refused.json()["errors"][0]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        detail.starts_with("there is no list vip.txt under lists"),
        "{detail}"
    );
    let with_list = format!("{RULES}lists: {{ vip.txt: [ a, \"7\" ] }}\n");
    assert_eq!(put(&with_list).status, 200);
    assert_eq!(
        (tier(&server, "7"), tier(&server, "b")),
        (json!("vip"), Value::Null)
    );
}
