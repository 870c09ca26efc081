//! What reading a rule file promises.

use std::{
    fs,
    path::{Path, PathBuf},
};

use limiter::{
    key::HashSeed,
    quota::Algorithm,
    rule::{Action, Commit, Condition, Consistency, Expect, Fallback, KeyPart, Rule, Scope},
    ruleset::RULES_MAX,
    time::Micros,
};
use proptest::prelude::*;

use super::*;

mod cost;
mod said;
mod schema;
mod tiers_of_rules;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/rules")
}
fn parse(text: &str) -> Result<RuleFile, Problems> {
    RuleFile::parse("r.yaml", text.as_bytes())
}

/// What is said of a file.
fn said(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// The one rule of a file that has these lines in it.
fn rule(lines: &str) -> Rule {
    let lines = lines.replace('\n', "\n    ");
    let text = format!("version: 1\ndomain: d\nrules:\n  - name: r\n    limit: 10\n    {lines}\n");
    parse(&text).unwrap().rules.remove(0)
}

#[test]
fn a_rule_that_says_only_what_it_must_has_the_defaults() {
    let read = rule("window: 1m");
    assert_eq!(read, Rule::new("r", read.quota));
    assert_eq!(read.quota.algorithm, Algorithm::SlidingWindow);
    assert_eq!(read.quota.window.fixed(), Some(Micros::from_secs(60)));
    assert_eq!(
        (read.scope, read.consistency),
        (Scope::Region, Consistency::Leased)
    );
    assert_eq!((read.local_cap, read.tolerance_ppm), (10, 20_000));
    assert_eq!(read.hold, Micros::from_millis(5));
}

#[test]
fn a_rule_that_says_everything_is_read_to_the_letter() {
    let read = rule(
        "window: 90s
algorithm: token_bucket
burst: 20
cost: 2
count_denied: true
scope: global
consistency: exact
local_cap: 0
tolerance: 0.5%
hold: 9ms
on_failure: { lease_expired: deny }
action: shadow
penalty: 1h
commit: fast",
    );
    assert_eq!(read.quota.algorithm, Algorithm::TokenBucket);
    assert_eq!(read.quota.capacity(), 20);
    assert_eq!(read.quota.window.fixed(), Some(Micros::from_secs(90)));
    assert_eq!((read.cost, read.count_denied), (2.into(), true));
    assert_eq!(
        (read.scope, read.consistency),
        (Scope::Global, Consistency::Exact)
    );
    assert_eq!((read.local_cap, read.tolerance_ppm), (0, 5_000));
    assert_eq!(read.hold, Micros::from_millis(9));
    assert_eq!(read.on_failure.no_lease, Fallback::Allow);
    assert_eq!(read.on_failure.lease_expired, Fallback::Deny);
    assert_eq!(read.action, Action::Shadow);
    assert_eq!(read.penalty, Micros::from_secs(3_600));
    assert_eq!(read.commit, Commit::Fast);
}

#[test]
fn every_word_for_a_key_reads_back_as_it_is_shown() {
    let address = |v4_bits, v6_bits| KeyPart::Address { v4_bits, v6_bits };
    for (word, part, shown) in [
        ("ip", address(32, 64), "ip"),
        ("ip/24", address(24, 64), "ip/24/64"),
        ("ip/56", address(32, 56), "ip/32/56"),
        ("ip/24/128", address(24, 128), "ip/24/128"),
        (
            "header.X-Key",
            KeyPart::Header("x-key".into()),
            "header.x-key",
        ),
        ("cookie.Sid", KeyPart::Cookie("Sid".into()), "cookie.Sid"),
        ("query.a.b", KeyPart::Query("a.b".into()), "query.a.b"),
        ("path", KeyPart::Path, "path"),
        ("'path[2]'", KeyPart::PathSegment(2), "path[2]"),
        ("method", KeyPart::Method, "method"),
        ("host", KeyPart::Host, "host"),
        (
            "constant:a b.c",
            KeyPart::Constant("a b.c".into()),
            "constant:a b.c",
        ),
    ] {
        let read = rule(&format!("window: 1m\nkey: [ {word} ]"));
        assert_eq!(read.key, std::slice::from_ref(&part), "{word}");
        assert_eq!(RuleReport::of(&read, said::FLEET).key, [shown]);
        assert_eq!(rule(&format!("window: 1m\nkey: \"{shown}\"")).key, [part]);
    }
}

#[test]
fn a_scalar_is_the_text_that_was_written() {
    let read = rule(
        "window: 1m
match:
  methods: GET
  headers: { X-A: no, x-b: [1.10, 0x10, 'null', 010], x-c: \"\", x-d: [present], x-e: absent }",
    );
    let header = |name: &str, expect| Condition::Header {
        name: name.into(),
        expect,
    };
    let one_of = |values: &[&str]| Expect::OneOf(values.iter().map(ToString::to_string).collect());
    assert_eq!(
        read.conditions,
        [
            Condition::Method(vec!["GET".into()]),
            header("x-a", one_of(&["no"])),
            header("x-b", one_of(&["1.10", "0x10", "null", "010"])),
            header("x-c", one_of(&[""])),
            header("x-d", one_of(&["present"])),
            header("x-e", Expect::Absent),
        ]
    );
}

#[test]
fn json_and_yaml_say_the_same() {
    let yaml = "version: 1\ndomain: d\nrules:\n- {name: r, limit: 1, window: 1s, key: ip}\n";
    let json = "{\"version\": 1, \"domain\": \"d\", \"rules\":\n\t[{\"name\": \"r\", \
                \"limit\": 1, \"window\": \"1s\", \"key\": [\"ip\"]}]}";
    assert_eq!(parse(json), parse(yaml));
    assert!(parse(yaml).is_ok());
}

#[test]
fn a_small_text_cannot_become_a_large_tree() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\n";
    assert!(said(bomb).contains("anchors are not read"));
    for (deep, place) in [("[", "1:33"), ("{a: ", "1:129"), ("- ", "1:65")] {
        let deep = deep.repeat(100_000);
        let said = said(&deep);
        assert!(said.starts_with(&format!("r.yaml:{place}: ")), "{said}");
        assert!(said.ends_with(": values nest too deep"), "{said}");
    }
    let long = vec![b' '; FILE_LEN_MAX + 1];
    let problems = RuleFile::parse("f", &long).unwrap_err().to_string();
    assert_eq!(
        problems,
        "f: longer than 4194304 bytes, the most a rule file may have"
    );
}

#[test]
fn as_many_rules_as_a_set_holds_fit_in_a_file() {
    let text = |count: usize| {
        let rule = |n| {
            format!(
                "  - {{ name: rule-{n}, match: {{ hosts: h{n}.example.com, paths: /v1/** }}, key: [ header.x-api-key ], limit: 100, window: 1m, scope: global }}\n"
            )
        };
        let rules: String = (0..count).map(rule).collect();
        format!("version: 1\ndomain: d\nrules:\n{rules}")
    };
    let file = parse(&text(RULES_MAX)).unwrap();
    let set = file.into_rule_set(3, HashSeed::default()).unwrap();
    assert_eq!((set.len(), set.revision), (RULES_MAX, 3));
    assert!(said(&text(RULES_MAX + 1)).contains("at most 10000 rules, got 10001"));
}

proptest! {
    #[test]
    fn no_bytes_at_all_make_the_reader_panic(
        bytes: Vec<u8>,
        yaml in "[-:a&*!|>{}\\[\\], \n\t'\"#%?1]{0,40}",
        place: prop::sample::Index,
        byte: u8,
    ) {
        let mut spoiled = fs::read(golden().join("good-full.yaml")).unwrap();
        let place = place.index(spoiled.len());
        spoiled[place] = byte;
        for bytes in [&bytes, yaml.as_bytes(), &spoiled] {
            let _ = RuleFile::parse("f", bytes);
        }
    }
}
