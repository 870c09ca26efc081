//! What a rule means to each tier.

use std::sync::Arc;

use limiter::ruleset::RuleSet;

use super::{super::*, parse};

const TIERS: [&str; 3] = ["one", "two", "three"];

/// Three tiers, each told by a header, and a rule that sets some of them apart.
fn rules(apart: &[&str]) -> Arc<RuleSet> {
    let tier = |name: &&str| {
        format!("  - {{ name: {name}, when: {{ header: {{ x-{name}: present }} }} }}\n")
    };
    let tiers: String = TIERS.iter().map(tier).collect();
    let limit = |tier: &&str| format!("{tier}: {{ limit: 2 }}");
    let limits: Vec<_> = apart.iter().map(limit).collect();
    let per_tier = match limits.is_empty() {
        true => String::new(),
        false => format!(", per_tier: {{ {} }}", limits.join(", ")),
    };
    let text = format!(
        "version: 1\ndomain: d\ntiers:\n{tiers}rules:\n  - {{ name: r, limit: 1, window: 1m{per_tier} }}\n"
    );
    let file = parse(&text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    Arc::new(
        file.into_rule_set(1, limiter::key::HashSeed::default())
            .unwrap(),
    )
}

fn subsets() -> impl Iterator<Item = Vec<&'static str>> {
    let subset = |bits: usize| {
        let tiers = TIERS.iter().enumerate();
        let members = tiers.filter(move |(place, _)| bits >> place & 1 == 1);
        members.map(|(_, tier)| *tier).collect()
    };
    (0..8).map(subset)
}

#[test]
fn a_request_is_of_the_first_tier_that_holds_and_counts_once_whatever_a_rule_says_of_it() {
    for apart in subsets() {
        let rules = rules(&apart);
        assert_eq!(rules.len(), 1 + apart.len());
        for holds in subsets() {
            let headers: Vec<_> = holds.iter().map(|tier| format!("x-{tier}: 1")).collect();
            let request = Described::new("GET /", &headers, None).unwrap();
            let hits = rules.resolve(&request).hits;
            let counted: Vec<_> = hits
                .iter()
                .map(|hit| rules.rule(hit.rule).unwrap().tier.as_deref())
                .collect();
            let expected = holds.first().filter(|tier| apart.contains(tier));
            assert_eq!(counted, [expected.copied()], "{apart:?} {holds:?}");
        }
    }
}

#[test]
fn what_a_tier_does_not_say_is_as_for_everybody_else_and_its_counters_are_its_own() {
    let file = parse(
        "version: 1
domain: d
tiers: [ { name: paid, when: { header: { x-plan: paid } } }, { name: vip, when: { country: DE } } ]
rules:
  - name: r
    match: { paths: /a }
    key: [ ip ]
    limit: 10
    window: month
    hold: 7ms
    penalty: 3s
    local_cap: 4
    scope: global
    per_tier: { paid: { limit: 20, window: 1m, penalty: 0s }, vip: unlimited }
",
    )
    .unwrap();
    let [everybody, paid, vip] = &file.rules[..] else {
        panic!("{:?}", file.rules)
    };
    assert_eq!((everybody.tier.as_deref(), &*everybody.name), (None, "r"));
    assert_eq!((paid.tier.as_deref(), &*paid.name), (Some("paid"), "r"));
    assert_eq!(paid.quota.limit.get(), 20);
    assert_eq!(
        paid.quota.window.fixed(),
        Some(limiter::time::Micros::from_secs(60))
    );
    assert_eq!((paid.hold, paid.local_cap), (everybody.hold, 4));
    assert_eq!(paid.penalty, limiter::time::Micros::ZERO);
    assert_eq!(
        (&paid.conditions, &paid.key),
        (&everybody.conditions, &everybody.key)
    );
    assert_eq!((paid.scope, vip.unlimited), (everybody.scope, true));
    let rules = file
        .clone()
        .into_rule_set(1, limiter::key::HashSeed::default())
        .unwrap();
    let counter = |place| rules.key_of(place, &[b"192.0.2.7"]);
    assert_ne!(counter(0), counter(1));
    assert_eq!(rules.by_name("r"), Some(0));
    assert_eq!(
        rules.tiers_of("r").collect::<Vec<_>>(),
        [("paid", 1), ("vip", 2)]
    );
}

#[test]
fn unlimited_applies_to_nothing_and_explain_says_so() {
    let text = "version: 1\ndomain: d
tiers: [ { name: vip, when: { header: { x-vip: present } } } ]
rules: [ { name: r, limit: 1, window: 1m, per_tier: { vip: unlimited } }, { name: off, limit: unlimited } ]";
    let file = parse(text).unwrap();
    let rules = Arc::new(
        file.into_rule_set(1, limiter::key::HashSeed::default())
            .unwrap(),
    );
    let request = |header: &str| Described::new("GET /", &[header.to_owned()], None).unwrap();
    let places = |header| {
        let hits = rules.resolve(&request(header)).hits;
        hits.iter().map(|hit| hit.rule).collect::<Vec<_>>()
    };
    assert_eq!(places("x-vip: 1"), [0; 0]);
    assert_eq!(places("x-other: 1"), [0]);
    let said = explain::say("r.yaml", &rules, &request("x-vip: 1"), Format::Table);
    let expected = "GET /
r.yaml: 0 of 3 rules apply

does not  r
    another tier's: not (header x-vip present): one of these holds

does not  r@vip
    it would apply, and is unlimited

does not  off
    it would apply, and is unlimited
";
    assert_eq!(said, expected);
}
