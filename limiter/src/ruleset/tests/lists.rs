//! What rules make of lists.

use super::*;
use crate::wire;

fn values(name: &str, values: &[&str]) -> Arc<List> {
    let bytes = values.iter().map(|value| value.as_bytes());
    Arc::new(List::of_values(name, HashSeed::default(), bytes))
}

fn blocks(blocks: &[&str]) -> Arc<List> {
    let blocks: Vec<Cidr> = blocks.iter().map(|block| block.parse().unwrap()).collect();
    Arc::new(List::of_blocks("blocks", HashSeed::default(), &blocks))
}

fn applies(key: Vec<KeyPart>, condition: Condition, request: &Told) -> bool {
    let rule = Rule {
        conditions: vec![condition],
        ..keyed("r", key)
    };
    !matching(&set(vec![rule]), request).is_empty()
}

#[test]
fn a_key_is_looked_up_as_it_is_counted_under() {
    let in_list = |key: Vec<KeyPart>, listed: &str, request: &Told| {
        applies(key, Condition::KeyIn(values("l", &[listed])), request)
    };
    let request = Told {
        method: "GET",
        host: "A.example.com:443",
        path: "/v1/a?q=a+b",
        headers: vec![("x-key", b"k1"), ("cookie", b"sid=s1")],
        ..Told::default()
    };
    for (part, listed) in [
        (KeyPart::Header("x-key".into()), "k1"),
        (
            KeyPart::Optional(KeyPart::Header("x-key".into()).into()),
            "k1",
        ),
        (KeyPart::Cookie("sid".into()), "s1"),
        (KeyPart::Query("q".into()), "a b"),
        (KeyPart::Host, "a.example.com"),
        (KeyPart::Path, "/v1/a"),
        (KeyPart::PathSegment(1), "v1"),
        (KeyPart::Method, "GET"),
    ] {
        let first = vec![KeyPart::Constant("c".into()), part, KeyPart::Method];
        assert!(in_list(first.clone(), listed, &request), "{first:?}");
        assert!(!in_list(first.clone(), "other", &request), "{first:?}");
    }
    // What is missing is in no list.
    let lacking = KeyPart::Optional(KeyPart::Header("x-none".into()).into());
    assert!(!in_list(vec![lacking], "", &request));
}

#[test]
fn an_address_is_looked_up_whole_though_it_is_counted_by_its_network() {
    let key = || {
        vec![KeyPart::Address {
            v4_bits: 24,
            v6_bits: 64,
        }]
    };
    let list = blocks(&["192.0.2.7", "2001:db8::/32"]);
    let from = |address| Told {
        address: Some(address),
        ..Told::default()
    };
    for condition in [
        Condition::KeyIn(Arc::clone(&list)),
        Condition::AddressIn(Arc::clone(&list)),
    ] {
        let applies = |address| applies(key(), condition.clone(), &from(address));
        assert!(applies("192.0.2.7") && applies("2001:db8:1::1"));
        assert!(!applies("192.0.2.8") && !applies("2001:db9::1"));
    }
}

#[test]
fn a_value_is_looked_up_wherever_it_stands() {
    let list = values("l", &["v", ""]);
    let expect = || Expect::In(Arc::clone(&list));
    let (name, request) = (String::from("x"), |value| Told {
        path: "/?x=%76",
        headers: vec![("x", value)],
        ..Told::default()
    });
    let header = Condition::Header {
        name: name.clone(),
        expect: expect(),
    };
    let query = Condition::Query {
        name,
        expect: expect(),
    };
    assert!(applies(vec![], header.clone(), &request(b"v")));
    assert!(applies(vec![], header.clone(), &request(b"")));
    assert!(!applies(vec![], header.clone(), &request(b"w")));
    assert!(!applies(vec![], header, &Told::default()));
    assert!(applies(vec![], query, &request(b"w")));
}

/// A rule for everybody else, one for the tier of a list, and one for a tier that a
/// header tells.
fn tiers(vip: &Arc<List>) -> RuleSet {
    let tier = |name: &str, when: Vec<Condition>| {
        let mut rule = keyed("r", vec![KeyPart::Header("x-key".into()), KeyPart::Method]);
        rule.tier = Some(name.to_string());
        rule.when = when;
        rule
    };
    let vip = || Condition::KeyIn(Arc::clone(vip));
    let paid = Condition::Header {
        name: "x-plan".into(),
        expect: Expect::Absent,
    };
    let mut base = tier(
        "",
        vec![Condition::None(vec![vec![vip()], vec![paid.clone()]])],
    );
    base.tier = None;
    let not_vip = Condition::None(vec![vec![vip()]]);
    let rules = vec![
        base,
        tier("vip", vec![vip()]),
        tier("paid", vec![paid, not_vip]),
    ];
    RuleSet::new("d", 1, vec![], HashSeed::default(), rules).unwrap()
}

#[test]
fn who_is_named_by_a_key_is_of_the_tier_that_a_list_alone_says() {
    let rules = tiers(&values("vip", &["k1"]));
    assert_eq!(rules.for_key("r", &[b"k1", b"GET"]), Some(1));
    assert_eq!(rules.for_key("r", &[b"k2", b"GET"]), Some(0));
    assert_eq!(rules.for_key("r", &[]), Some(0));
    assert_eq!(rules.for_key("q", &[b"k1"]), None);
}

#[test]
fn lists_travel_once_and_then_by_their_identity() {
    let vip = values("vip", &["k1", "k2"]);
    let rules = tiers(&vip);
    assert_eq!(rules.lists(), [Arc::clone(&vip)]);
    let whole = wire::RuleSet::from(&rules);
    assert_eq!(whole.lists.len(), 1);
    assert_eq!(whole.lists[0].hashes.len(), 16);
    let arrived = RuleSet::try_from(whole.clone()).unwrap();
    assert_eq!(arrived, rules);
    assert_eq!(arrived.lists()[0].name(), "vip");
    assert!(arrived.lists()[0].has(b"k1") && !arrived.lists()[0].has(b"k3"));
    let short = wire::RuleSet::for_one_who_has(&rules, &[vip.id().0]);
    assert!(short.lists[0].kept && short.lists[0].hashes.is_empty());
    let known = arrived.lists().to_vec();
    let again = RuleSet::read(short.clone(), &known).unwrap();
    assert!(Arc::ptr_eq(&again.lists()[0], &known[0]));
    // Who has not got it after all says so, and takes none of the rules.
    let error = RuleSet::try_from(short).unwrap_err().to_string();
    assert_eq!(error, "list vip was left out, and is not known");
    let mut cut = whole;
    cut.lists[0].hashes = cut.lists[0].hashes.slice(1..);
    assert!(RuleSet::try_from(cut).is_err());
}

#[test]
fn who_knows_nothing_of_lists_applies_such_rules_to_nothing() {
    let mut message = wire::RuleSet::from(&tiers(&values("vip", &["k1"])));
    message.lists.clear();
    fn forget(conditions: &mut [wire::Condition]) {
        use wire::condition::Kind;
        for condition in conditions {
            match &mut condition.kind {
                Some(Kind::KeyIn(_)) => condition.kind = None,
                Some(Kind::Any(all) | Kind::None(all)) => {
                    let lists = all.alternatives.iter_mut();
                    lists.for_each(|list| forget(&mut list.conditions));
                }
                _ => {}
            }
        }
    }
    for rule in &mut message.rules {
        forget(&mut rule.conditions);
    }
    let rules = RuleSet::try_from(message).unwrap();
    assert!(rules.rules().all(|rule| !rule.is_supported()));
}

#[test]
fn a_list_of_keys_needs_a_key_and_blocks_an_address() {
    let wrong = |key: Vec<KeyPart>, condition: Condition| {
        let rule = Rule {
            conditions: vec![condition],
            ..keyed("r", key)
        };
        rule.validate().unwrap_err()
    };
    let list = || values("l", &["a"]);
    let constant = vec![KeyPart::Constant("c".into())];
    assert_eq!(
        wrong(vec![], Condition::KeyIn(list())),
        RuleError::NoKeyToList
    );
    assert_eq!(
        wrong(constant, Condition::KeyIn(list())),
        RuleError::NoKeyToList
    );
    let method = || vec![KeyPart::Method];
    let of_blocks = Condition::KeyIn(blocks(&["10.0.0.0/8"]));
    assert_eq!(wrong(method(), of_blocks), RuleError::ListKind);
    assert_eq!(
        wrong(method(), Condition::AddressIn(list())),
        RuleError::ListKind
    );
}
