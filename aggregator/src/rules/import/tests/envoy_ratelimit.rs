//! Descriptors: the rules decide as the lookup in the tree does.

use std::collections::BTreeSet;

use super::*;

const SOURCE: Source = Source::EnvoyRatelimit;

const BY_HEADER: &str = "# map: a=header.a\n# map: b=header.b\ndomain: d\n";

fn limits(text: &str) -> Arc<RuleSet> {
    rules(SOURCE, &format!("{BY_HEADER}{text}"))
}

fn asked(rules: &Arc<RuleSet>, headers: &[&str]) -> Vec<String> {
    met(rules, &request("GET /", headers, "192.0.2.7"))
}

#[test]
fn a_value_wins_over_a_star_and_a_star_over_none() {
    let rules = limits(
        "descriptors:
- key: a
  rate_limit: { unit: minute, requests_per_unit: 1 }
- key: a
  value: gold
  rate_limit: { unit: minute, requests_per_unit: 100 }
- key: a
  value: g*
  rate_limit: { unit: minute, requests_per_unit: 10 }
",
    );
    assert_eq!(asked(&rules, &["a: gold"]), ["a=gold"]);
    assert_eq!(asked(&rules, &["a: green"]), ["a=g* green"]);
    assert_eq!(asked(&rules, &["a: blue"]), ["a blue"]);
    assert_eq!(asked(&rules, &[]), [""; 0]);
}

#[test]
fn the_lookup_does_not_turn_back_from_a_branch_it_took() {
    let rules = limits(
        "descriptors:
- key: a
  value: x
- key: a
  descriptors:
  - key: b
    rate_limit: { unit: second, requests_per_unit: 5 }
",
    );
    assert_eq!(asked(&rules, &["a: x", "b: 1"]), [""; 0]);
    assert_eq!(asked(&rules, &["a: y", "b: 1"]), ["a/b y 1"]);
}

#[test]
fn unlimited_applies_to_nothing_and_is_nobody_else_s_business() {
    let rules = limits(
        "descriptors:
- key: a
  value: staff
  rate_limit: { unlimited: true }
- key: a
  rate_limit: { unit: hour, requests_per_unit: 5 }
",
    );
    let unlimited = rules.rules().map(|rule| rule.unlimited);
    assert_eq!(unlimited.collect::<Vec<_>>(), [true, false]);
    assert_eq!(asked(&rules, &["a: staff"]), [""; 0]);
    assert_eq!(asked(&rules, &["a: other"]), ["a other"]);
}

#[test]
fn a_limit_that_replaces_another_is_the_only_one_asked() {
    let rules = limits(
        "descriptors:
- key: a
  rate_limit: { name: everyone, unit: hour, requests_per_unit: 5 }
- key: b
  value: vip
  rate_limit: { name: vip, unit: hour, requests_per_unit: 50, replaces: [ { name: everyone } ] }
",
    );
    assert_eq!(asked(&rules, &["a: 1"]), ["a 1"]);
    assert_eq!(asked(&rules, &["a: 1", "b: vip"]), ["b=vip"]);
}

#[test]
fn values_under_a_star_share_a_count_only_if_that_was_asked_for() {
    let shared = |share: bool| {
        limits(&format!(
            "descriptors:
- key: a
  value: u*
  share_threshold: {share}
  rate_limit: {{ unit: second, requests_per_unit: 1 }}
"
        ))
    };
    assert_eq!(asked(&shared(true), &["a: u1"]), ["a=u*"]);
    assert_eq!(asked(&shared(false), &["a: u1"]), ["a=u* u1"]);
}

#[test]
fn units_are_windows_and_shadow_mode_only_watches() {
    for (unit, secs) in [
        ("second", 1),
        ("MINUTE", 60),
        ("hour", 3_600),
        ("day", 86_400),
        ("week", 7 * 86_400),
        ("month", 30 * 86_400),
        ("year", 365 * 86_400),
    ] {
        let text = format!(
            "domain: d\ndescriptors: [ {{ key: remote_address, shadow_mode: true, rate_limit: {{ unit: {unit}, requests_per_unit: 7 }} }} ]"
        );
        let rule = rule(SOURCE, &text);
        assert_eq!(
            rule.quota.window.fixed(),
            Some(limiter::time::Micros::from_secs(secs))
        );
        assert_eq!(rule.quota.limit.get(), 7);
        assert_eq!(rule.quota.algorithm, limiter::quota::Algorithm::FixedWindow);
        assert_eq!(rule.action, limiter::rule::Action::Shadow);
        assert!(rule.count_denied);
    }
}

#[test]
fn an_address_is_counted_whole() {
    let text = "domain: d\ndescriptors: [ { key: remote_address, rate_limit: { unit: day, requests_per_unit: 7 } } ]";
    let rules = rules(SOURCE, text);
    let met = met(&rules, &request("GET /", &[], "2001:db8::7"));
    assert_eq!(met, ["remote_address 2001:db8::7"]);
}

#[test]
fn what_an_entry_is_can_be_said() {
    assert!("api_key=header.x-api-key".parse::<Entry>().is_ok());
    let wrong = |text: &str| text.parse::<Entry>().unwrap_err().to_string();
    assert_eq!(
        wrong("api_key"),
        "expected an entry and where it comes from, as in api_key=header.x-api-key"
    );
    assert!(wrong("a=head.x").starts_with("unknown part of a key, \"head\", did you mean header"));
}

/// A descriptor of a made-up tree.
#[derive(Clone, Debug)]
struct Node {
    value: Option<&'static str>,
    limited: bool,
    below: Vec<Node>,
}

fn any_level(below: BoxedStrategy<Vec<Node>>) -> BoxedStrategy<Vec<Node>> {
    const VALUES: [Option<&str>; 5] = [Some("x"), Some("xy"), Some("x*"), Some("*y"), None];
    let values = prop::sample::subsequence(&VALUES, 0..=4).prop_shuffle();
    let nodes = values.prop_flat_map(move |values| {
        let node = |value| {
            (any::<bool>(), below.clone()).prop_map(move |(limited, below)| Node {
                value,
                limited,
                below,
            })
        };
        values.into_iter().map(node).collect::<Vec<_>>()
    });
    nodes.boxed()
}

fn yaml(nodes: &[Node], keys: &[&str], indent: &str) -> String {
    let Some((key, keys)) = keys.split_first() else {
        return String::new();
    };
    let mut text = String::new();
    for node in nodes {
        text += &format!("{indent}- key: {key}\n");
        if let Some(value) = node.value {
            text += &format!("{indent}  value: \"{value}\"\n");
        }
        if node.limited {
            text += &format!("{indent}  rate_limit: {{ unit: hour, requests_per_unit: 1 }}\n");
        }
        if !node.below.is_empty() && !keys.is_empty() {
            text += &format!("{indent}  descriptors:\n");
            text += &yaml(&node.below, keys, &format!("{indent}  "));
        }
    }
    text
}

/// The lookup, as the source does it: the name of the limit that is found.
fn lookup(nodes: &[Node], entries: &[(&str, &str)]) -> Option<String> {
    let ((key, value), rest) = entries.split_first()?;
    let fits = |node: &&Node| match node.value {
        Some(glob) => glob.contains('*') && fits_glob(glob, value),
        None => false,
    };
    let exact = nodes.iter().find(|node| node.value == Some(value));
    let star = || nodes.iter().find(fits);
    let plain = || nodes.iter().find(|node| node.value.is_none());
    let node = exact.or_else(star).or_else(plain)?;
    let name = node
        .value
        .map_or((*key).to_owned(), |value| format!("{key}={value}"));
    match rest {
        [] => node.limited.then_some(name),
        rest => Some(format!("{name}/{}", lookup(&node.below, rest)?)),
    }
}

fn fits_glob(glob: &str, value: &str) -> bool {
    match glob.strip_suffix('*') {
        Some(start) => value.starts_with(start),
        None => value.ends_with(&glob[1..]),
    }
}

proptest! {
    #[test]
    fn the_rules_of_any_tree_are_the_limits_that_the_lookup_finds(
        tree in any_level(any_level(Just(Vec::new()).boxed())),
        a in prop::sample::select(vec!["x", "xy", "xz", "zy", "z"]),
        b in prop::option::of(prop::sample::select(vec!["x", "xy", "xz", "zy", "z"])),
    ) {
        prop_assume!(!tree.is_empty());
        let rules = limits(&format!("descriptors:\n{}", yaml(&tree, &["a", "b"], "")));
        let mut headers = vec![format!("a: {a}")];
        let mut expected: BTreeSet<String> = lookup(&tree, &[("a", a)]).into_iter().collect();
        if let Some(b) = b {
            headers.push(format!("b: {b}"));
            expected.extend(lookup(&tree, &[("a", a), ("b", b)]));
        }
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let request = request("GET /", &headers, "");
        let hits = rules.resolve(&request).hits;
        let met: BTreeSet<String> = hits.iter().map(|hit| rules.rule(hit.rule).unwrap().name.clone()).collect();
        prop_assert_eq!(met, expected);
    }
}
