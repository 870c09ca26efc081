//! What a set of rules promises.

mod index;

use alloc::{format, string::ToString, vec};
use core::{error::Error, num::NonZeroU64};

use super::*;
use crate::{
    quota::{Algorithm, Quota},
    rule::{Attribute, Condition, Cost, Expect, KeyPart, RuleError},
    time::Micros,
    window::Window,
};

mod lists;

/// A request made of what a test says of it.
#[derive(Clone, Debug, Default)]
struct Told {
    method: &'static str,
    host: &'static str,
    path: &'static str,
    headers: Vec<(&'static str, &'static [u8])>,
    address: Option<&'static str>,
    attribute: Option<&'static str>,
}

impl Request for Told {
    fn method(&self) -> &[u8] {
        self.method.as_bytes()
    }
    fn host(&self) -> &[u8] {
        self.host.as_bytes()
    }
    fn path(&self) -> &[u8] {
        self.path.as_bytes()
    }
    fn header(&self, name: &str) -> Option<&[u8]> {
        let found = self.headers.iter().find(|(header, _)| *header == name);
        found.map(|(_, value)| *value)
    }
    fn address(&self) -> Option<IpAddr> {
        self.address.map(|text| text.parse().unwrap())
    }
    fn attribute(&self, _: &Attribute) -> Option<&[u8]> {
        self.attribute.map(str::as_bytes)
    }
}

fn quota(limit: u64, secs: u64, algorithm: Algorithm) -> Quota {
    let window = Window::new(Micros::from_secs(secs)).unwrap();
    Quota::new(NonZeroU64::new(limit).unwrap(), window, algorithm)
}

fn rule(name: &str) -> Rule {
    Rule::new(name, quota(100, 60, Algorithm::SlidingWindow))
}

fn keyed(name: &str, key: Vec<KeyPart>) -> Rule {
    Rule { key, ..rule(name) }
}

fn when(name: &str, conditions: Vec<Condition>) -> Rule {
    Rule {
        conditions,
        ..rule(name)
    }
}

fn set(rules: Vec<Rule>) -> Arc<RuleSet> {
    Arc::new(RuleSet::new("d", 1, vec![], HashSeed::default(), rules).unwrap())
}

fn matching(rules: &Arc<RuleSet>, request: &Told) -> Vec<usize> {
    let query = rules.resolve(request);
    query.hits.iter().map(|hit| hit.rule).collect()
}

fn key(rule: Rule, request: &Told) -> Option<CounterKey> {
    Some(set(vec![rule]).resolve(request).hits.first()?.key)
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

#[test]
fn a_request_spends_from_every_rule_that_applies_in_their_order() {
    let rules = set(vec![
        when("paths", vec![Condition::Path(texts(&["/v1/**"]))]),
        rule("all"),
        when("hosts", vec![Condition::Host(texts(&["a.com", "b.com"]))]),
        when("other", vec![Condition::Host(texts(&["c.com"]))]),
        when(
            "both",
            vec![
                Condition::Path(texts(&["/v1/x", "/v2"])),
                Condition::Host(texts(&["A.com"])),
            ],
        ),
        when("below", vec![Condition::Host(texts(&["*.com"]))]),
    ]);
    let request = Told {
        host: "A.COM:443",
        path: "/v1/x?y",
        ..Told::default()
    };
    assert_eq!(matching(&rules, &request), [0, 1, 2, 4, 5]);
    assert_eq!(rules.resolve(&request).hits[0].cost, 1);
    assert_eq!(matching(&rules, &Told::default()), [1]);
}

#[test]
fn every_condition_must_hold() {
    let header = |name: &str, expect| Condition::Header {
        name: name.into(),
        expect,
    };
    let rules = set(vec![when(
        "r",
        vec![
            header("x-a", Expect::Present),
            header("x-b", Expect::Absent),
            header("x-c", Expect::OneOf(texts(&["one", "two"]))),
            Condition::Method(texts(&["GET", "POST"])),
            Condition::Address(vec!["10.0.0.0/8".parse().unwrap()]),
        ],
    )]);
    let good = Told {
        method: "POST",
        headers: vec![("x-a", b""), ("x-c", b"two")],
        address: Some("10.1.2.3"),
        ..Told::default()
    };
    assert_eq!(matching(&rules, &good), [0]);
    let spoil: [fn(&mut Told); 6] = [
        |told| told.method = "post",
        |told| told.headers.retain(|(name, _)| *name != "x-a"),
        |told| told.headers.push(("x-b", b"")),
        |told| told.headers.retain(|(name, _)| *name != "x-c"),
        |told| told.address = Some("11.1.2.3"),
        |told| told.address = None,
    ];
    for (place, spoil) in spoil.iter().enumerate() {
        let mut bad = good.clone();
        spoil(&mut bad);
        assert_eq!(matching(&rules, &bad), [0; 0], "{place}");
    }
}

#[test]
fn alternatives_cookies_and_parameters_are_asked_as_they_nest() {
    let query = |expect| Condition::Query {
        name: "q".into(),
        expect,
    };
    let cookie = |expect| Condition::Cookie {
        name: "sid".into(),
        expect,
    };
    let path = |path: &str| Condition::Path(texts(&[path]));
    let rules = set(vec![when(
        "r",
        vec![
            Condition::Any(vec![
                vec![path("/a/**"), query(Expect::OneOf(texts(&["c d"])))],
                vec![cookie(Expect::Like(texts(&["x*z"])))],
            ]),
            Condition::None(vec![
                vec![path("/a/no")],
                vec![Condition::Any(vec![vec![cookie(Expect::OneOf(texts(&[
                    "xyz",
                ])))]])],
            ]),
        ],
    )]);
    let asked = |path, cookie| {
        let headers = vec![("cookie", cookie)];
        let told = Told {
            path,
            headers,
            ..Told::default()
        };
        matching(&rules, &told) == [0]
    };
    assert!(asked("/a/b?q=c+d", b""));
    assert!(asked("/b", b"sid=xz"));
    assert!(!asked("/b?q=c+d", b"sid=x"));
    assert!(!asked("/a/no?q=c+d", b""));
    assert!(!asked("/b", b"sid=xyz"));
    let needs = rules.needs();
    assert!(needs.path && needs.headers == ["cookie"]);
}

#[test]
fn an_optional_part_counts_those_that_lack_it_apart_from_those_that_have_it_empty() {
    let part = KeyPart::Optional(KeyPart::Header("x-key".into()).into());
    let told = |headers| Told {
        headers,
        ..Told::default()
    };
    let counter = |request: &Told| key(keyed("r", vec![part.clone()]), request);
    let missing = counter(&told(vec![]));
    let empty = counter(&told(vec![("x-key", b"")]));
    assert!(missing.is_some() && empty.is_some() && missing != empty);
    let rules = set(vec![keyed("r", vec![part.clone()])]);
    assert_eq!(rules.key_of(0, &[b""]), empty);
    assert_eq!(rules.rule(0).unwrap().arity(), 1);
    let needed = key(
        keyed("r", vec![KeyPart::Header("x-key".into())]),
        &told(vec![("x-key", b"")]),
    );
    assert_ne!(needed, empty);
}

#[test]
fn what_keeps_a_rule_from_applying_is_the_first_thing_that_was_written() {
    let header = |name: &str| Condition::Header {
        name: name.into(),
        expect: Expect::Present,
    };
    let parts = vec![
        KeyPart::Query("q".into()),
        KeyPart::Optional(KeyPart::Header("x-c".into()).into()),
    ];
    let conditions = vec![header("x-a"), Condition::Method(texts(&["GET"]))];
    let rules = set(vec![Rule {
        conditions,
        ..keyed("r", parts)
    }]);
    let mut told = Told {
        method: "POST",
        path: "/",
        ..Told::default()
    };
    let not = |told: &Told| match rules.explain(0, told).unwrap() {
        Explained::Not(unmet) => unmet,
        applies => panic!("{applies:?}"),
    };
    assert_eq!(not(&told), Unmet::Condition(header("x-a")));
    told.headers.push(("x-a", b""));
    assert_eq!(
        not(&told),
        Unmet::Condition(Condition::Method(texts(&["GET"])))
    );
    told.method = "GET";
    assert_eq!(not(&told), Unmet::Key(KeyPart::Query("q".into())));
    told.path = "/?q=a%20b";
    let key = rules.resolve(&told).hits[0].key;
    let values = vec![Some(b"a b".to_vec()), None];
    assert_eq!(
        rules.explain(0, &told),
        Some(Explained::Applies {
            key,
            cost: 1,
            values
        })
    );
    assert_eq!(rules.explain(1, &told), None);
}

#[test]
fn a_request_costs_what_its_header_says_and_one_that_costs_nothing_is_not_its_business() {
    let with = |default| {
        let mut rule = rule("a");
        rule.cost = Cost::RequestHeader {
            name: "x-cost".into(),
            max: 10,
            default,
        };
        set(vec![rule])
    };
    let costs = |default: u64, value: Option<&'static [u8]>| {
        let mut told = Told::default();
        told.headers.extend(value.map(|value| ("x-cost", value)));
        let query = with(default).resolve(&told);
        query.hits.first().map(|hit| hit.cost)
    };
    for (value, cost) in [
        (&b"7"[..], 7),
        (b"10", 10),
        (b"11", 10),
        (b"99999999999999999999999", 10),
        (b"0", 2),
        (b"-1", 2),
        (b"1e3", 2),
        (b"\xff", 2),
        (b"", 2),
    ] {
        assert_eq!(costs(2, Some(value)), Some(cost), "{value:?}");
    }
    assert_eq!(costs(2, None), Some(2));
    assert_eq!(costs(0, None), None);
    assert_eq!(costs(0, Some(b"nonsense")), None);
    assert_eq!(costs(0, Some(b"3")), Some(3));
    let free = with(0);
    let unmet = Explained::Not(Unmet::Cost);
    assert_eq!(free.explain(0, &Told::default()), Some(unmet));
    assert_eq!(free.needs().headers, ["x-cost"]);
}

#[test]
fn what_is_not_understood_applies_to_nothing() {
    let rules = set(vec![Rule::unsupported("new"), rule("old")]);
    assert_eq!(matching(&rules, &Told::default()), [1]);
    assert_eq!(rules.by_name("new"), Some(0));
    assert_eq!(rules.by_id(rules.id(0).unwrap()), None);
    assert_eq!(rules.key_of(0, &[]), None);
    assert!(rules.key_of(1, &[]).is_some());
}

#[test]
fn a_request_without_the_value_counted_per_is_not_the_rules_business() {
    let nothing = Told {
        path: "/a",
        ..Told::default()
    };
    for part in [
        KeyPart::Header("x-key".into()),
        KeyPart::Cookie("sid".into()),
        KeyPart::Query("q".into()),
        KeyPart::PathSegment(2),
        KeyPart::Address {
            v4_bits: 32,
            v6_bits: 64,
        },
    ] {
        assert_eq!(
            key(keyed("r", vec![part.clone()]), &nothing),
            None,
            "{part:?}"
        );
    }
    let empty = Told {
        path: "/a/?q=",
        headers: vec![("x-key", b""), ("cookie", b"sid=")],
        ..Told::default()
    };
    for part in [
        KeyPart::Header("x-key".into()),
        KeyPart::Cookie("sid".into()),
        KeyPart::Query("q".into()),
        KeyPart::PathSegment(2),
    ] {
        assert!(
            key(keyed("r", vec![part.clone()]), &empty).is_some(),
            "{part:?}"
        );
    }
}

#[test]
fn a_counter_named_by_a_caller_is_the_one_a_request_spends_from() {
    let parts = vec![
        KeyPart::Address {
            v4_bits: 24,
            v6_bits: 64,
        },
        KeyPart::Constant("fixed".into()),
        KeyPart::Header("x-key".into()),
        KeyPart::Cookie("sid".into()),
        KeyPart::Query("q".into()),
        KeyPart::Path,
        KeyPart::PathSegment(1),
        KeyPart::Method,
        KeyPart::Host,
    ];
    let rules = set(vec![keyed("r", parts)]);
    let request = Told {
        method: "GET",
        host: "EXAMPLE.com:80",
        path: "/a/b?q=c+%64",
        headers: vec![("x-key", b"\xff"), ("cookie", b"sid=1")],
        address: Some("::ffff:192.0.2.7"),
        ..Told::default()
    };
    let mut values: Vec<&[u8]> = vec![
        b"192.0.2.99",
        b"\xff",
        b"1",
        b"c d",
        b"/a/b",
        b"a",
        b"GET",
        b"example.com",
    ];
    let named = rules.key_of(0, &values);
    assert_eq!(rules.resolve(&request).hits[0].key, named.unwrap());
    assert_eq!(rules.rule(0).unwrap().arity(), values.len());

    values.push(b"more");
    assert_eq!(rules.key_of(0, &values), None);
    values.truncate(7);
    assert_eq!(rules.key_of(0, &values), None);
    assert_eq!(rules.key_of(1, &[]), None);
}

#[test]
fn a_key_that_should_be_an_address_and_is_none_names_no_counter() {
    let (v4_bits, v6_bits) = (32, 64);
    let rules = set(vec![keyed(
        "r",
        vec![KeyPart::Address { v4_bits, v6_bits }],
    )]);
    assert!(rules.key_of(0, &[b"2001:db8::1"]).is_some());
    assert_eq!(rules.key_of(0, &[b"api_key"]), None);
    assert_eq!(
        rules.key_of(0, &[b"2001:db8::1"]),
        rules.key_of(0, &[b"2001:db8::2"])
    );
}

#[test]
fn a_rule_keeps_its_counts_when_anything_but_its_identity_changes() {
    let request = Told {
        headers: vec![("x-key", b"k")],
        ..Told::default()
    };
    let base = || keyed("r", vec![KeyPart::Header("x-key".into())]);
    let before = key(base(), &request);

    let mut kept = base();
    kept.quota = quota(200, 60, Algorithm::SlidingWindow);
    kept.conditions = vec![Condition::Header {
        name: "x-key".into(),
        expect: Expect::Present,
    }];
    kept.cost = 2.into();
    assert_eq!(key(kept, &request), before);

    let quotas = [
        quota(100, 61, Algorithm::SlidingWindow),
        quota(100, 60, Algorithm::FixedWindow),
        quota(100, 60, Algorithm::TokenBucket),
    ];
    for quota in quotas {
        assert_ne!(key(Rule { quota, ..base() }, &request), before);
    }
    let header = KeyPart::Header("x-key".into());
    for parts in [
        vec![header.clone(), KeyPart::Constant("c".into())],
        vec![KeyPart::Constant("k".into())],
        vec![header.clone(), header],
    ] {
        assert_ne!(key(keyed("r", parts), &request), before);
    }
    let renamed = keyed("s", vec![KeyPart::Header("x-key".into())]);
    assert_ne!(key(renamed, &request), before);
}

#[test]
fn who_does_not_know_the_seed_or_shares_no_domain_names_other_counters() {
    let one = |domain, seed| {
        let rules = RuleSet::new(domain, 1, vec![], HashSeed(seed), vec![rule("r")]).unwrap();
        (rules.key_of(0, &[]), rules.id(0))
    };
    let (name, id) = one("d", [0; 16]);
    assert_ne!(one("d", [1; 16]).0, name);
    assert_eq!(one("d", [1; 16]).1, id);
    assert_ne!(one("e", [0; 16]).0, name);
    assert_ne!(one("e", [0; 16]).1, id);
}

#[test]
fn a_counters_name_is_the_same_in_every_release() {
    let rules = set(vec![keyed(
        "per-key",
        vec![KeyPart::Header("x-key".into())],
    )]);
    let name = rules.key_of(0, &[b"8fa3"]).unwrap();
    assert_eq!(format!("{name:?} {:?}", rules.id(0).unwrap()), GOLDEN);
}

const GOLDEN: &str = "d26abf82505821b82dcbcf5c22628811 8eb55c6c219044cc";

#[test]
fn rules_that_make_no_set_say_why() {
    let wrong = |rules| {
        let set = RuleSet::new("d", 1, vec![], HashSeed::default(), rules);
        set.unwrap_err()
    };
    let twice = wrong(vec![rule("a"), rule("b"), rule("a")]);
    assert_eq!(twice.to_string(), "two rules are called a");

    let costless = wrong(vec![Rule {
        cost: 0.into(),
        ..rule("a")
    }]);
    assert_eq!(costless.to_string(), "rule 0 (a) cannot be enforced");
    let source = costless.source().unwrap();
    assert!(source.downcast_ref::<RuleError>().is_some());

    let many = (0..=RULES_MAX).map(|n| rule(&n.to_string())).collect();
    assert_eq!(wrong(many), RuleSetError::TooManyRules(RULES_MAX + 1));
}

#[test]
fn a_set_says_what_of_a_request_it_looks_at() {
    let rules = set(vec![
        keyed(
            "a",
            vec![KeyPart::Cookie("sid".into()), KeyPart::Header("x".into())],
        ),
        when(
            "b",
            vec![Condition::Header {
                name: "x".into(),
                expect: Expect::Present,
            }],
        ),
        keyed("c", vec![KeyPart::Query("q".into())]),
    ]);
    let needs = Needs {
        path: true,
        headers: texts(&["cookie", "x"]),
        ..Needs::default()
    };
    assert_eq!(rules.needs(), needs);
    assert_eq!(RuleSet::empty().needs(), Needs::default());

    let (v4_bits, v6_bits) = (32, 64);
    let by_address = keyed("a", vec![KeyPart::Address { v4_bits, v6_bits }]);
    let proxies = vec!["10.0.0.0/8".parse().unwrap()];
    let rules = RuleSet::new("d", 1, proxies, HashSeed::default(), vec![by_address]).unwrap();
    let needs = Needs {
        address: true,
        forwarded_for: true,
        ..Needs::default()
    };
    assert_eq!(rules.needs(), needs);
}

#[test]
fn ten_thousand_rules_hold_and_each_is_found() {
    let hosts = |n: usize| Condition::Host(vec![format!("h{n}.com")]);
    let rules = set((0..RULES_MAX)
        .map(|n| when(&format!("r{n}"), vec![hosts(n)]))
        .collect());
    let request = Told {
        host: "h9999.com",
        ..Told::default()
    };
    assert_eq!(matching(&rules, &request), [9_999]);
    assert_eq!(rules.by_name("r1234"), Some(1_234));
    assert_eq!(rules.by_id(rules.id(77).unwrap()), Some(77));
}
