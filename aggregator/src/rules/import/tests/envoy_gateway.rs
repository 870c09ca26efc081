//! Envoy Gateway's policies.

use limiter::rule::{Action, Scope};

use super::*;

const SOURCE: Source = Source::EnvoyGateway;

fn policy(rule: &str) -> String {
    let rule = rule.replace('\n', "\n        ");
    format!(
        "kind: BackendTrafficPolicy
metadata: {{ name: p }}
spec:
  targetRefs: [ {{ kind: HTTPRoute, name: api }} ]
  rateLimit:
    type: Global
    global:
      rules:
      - {rule}
---
kind: HTTPRoute
metadata: {{ name: api }}
spec:
  hostnames: [ api.example.com, \"*.api.example.com\" ]
  rules:
  - matches:
    - path: {{ type: PathPrefix, value: /v1 }}
"
    )
}

fn asked(rules: &Arc<RuleSet>, line: &str, headers: &[&str]) -> Vec<String> {
    met(rules, &request(line, headers, "192.0.2.7"))
}

#[test]
fn a_rule_is_for_the_requests_of_its_route_alone() {
    let rules = rules(SOURCE, &policy("limit: { requests: 3, unit: Hour }"));
    assert_eq!(
        asked(&rules, "GET https://api.example.com/v1/x", &[]),
        ["p/0"]
    );
    assert_eq!(
        asked(&rules, "GET https://a.api.example.com/v1", &[]),
        ["p/0"]
    );
    assert_eq!(
        asked(&rules, "GET https://api.example.com/v10", &[]),
        [""; 0]
    );
    assert_eq!(asked(&rules, "GET https://example.com/v1", &[]), [""; 0]);
    assert!(rules.rule(0).unwrap().count_denied);
}

#[test]
fn every_selector_must_hold_and_distinct_ones_are_counted_per() {
    let rules = rules(
        SOURCE,
        &policy(
            "clientSelectors:
- headers:
  - { name: x-user, type: Distinct }
  - { name: x-plan, value: free }
- sourceCIDR: { value: 192.0.2.0/24, type: Distinct }
- methods: [ { value: GET }, { value: POST } ]
- path: { value: /v1/no, type: PathPrefix, invert: true }
limit: { requests: 3, unit: Hour }",
        ),
    );
    let line = "GET https://api.example.com/v1/x";
    let headers = ["x-user: u", "x-plan: free"];
    assert_eq!(asked(&rules, line, &headers), ["p/0 u 192.0.2.7"]);
    assert_eq!(asked(&rules, line, &headers[..1]), [""; 0]);
    assert_eq!(asked(&rules, line, &headers[1..]), [""; 0]);
    assert_eq!(
        asked(&rules, "PUT https://api.example.com/v1/x", &headers),
        [""; 0]
    );
    assert_eq!(
        asked(&rules, "GET https://api.example.com/v1/no/x", &headers),
        [""; 0]
    );
    let elsewhere = request(line, &headers, "198.51.100.1");
    assert_eq!(met(&rules, &elsewhere), [""; 0]);
}

#[test]
fn a_header_that_must_be_something_else_must_be_there() {
    let rules = rules(
        SOURCE,
        &policy(
            "clientSelectors: [ { headers: [ { name: x-a, value: v, invert: true } ] } ]\nlimit: { requests: 3, unit: Hour }",
        ),
    );
    let line = "GET https://api.example.com/v1";
    assert_eq!(asked(&rules, line, &["x-a: w"]), ["p/0"]);
    assert_eq!(asked(&rules, line, &["x-a: v"]), [""; 0]);
    assert_eq!(asked(&rules, line, &[]), [""; 0]);
}

#[test]
fn a_local_limit_is_each_source_s_own_and_shadow_mode_only_watches() {
    let local = policy("limit: { requests: 3, unit: Second }").replace("global:", "local:");
    let local = rule(SOURCE, &local);
    assert_eq!((local.scope, local.count_denied), (Scope::Pop, false));
    let shadow = rule(
        SOURCE,
        &policy("shadowMode: true\nlimit: { requests: 3, unit: Second }"),
    );
    assert_eq!(
        (shadow.scope, shadow.action),
        (Scope::Region, Action::Shadow)
    );
    let cost = rule(
        SOURCE,
        &policy(
            "cost: { request: { from: Number, number: 2 } }\nlimit: { requests: 3, unit: Second }",
        ),
    );
    assert_eq!(cost.cost, 2.into());
}

#[test]
fn what_a_response_costs_is_kept_if_it_is_a_number_and_drops_the_rule_if_it_is_metadata() {
    let text =
        policy("cost: { response: { from: Metadata } }\nlimit: { requests: 3, unit: Second }");
    let said = report(SOURCE, &text);
    assert!(
        said.contains("dropped: cost.response: it stands in metadata of the proxy's own"),
        "{said}"
    );
    let both = "cost: { request: { from: Number, number: 0 }, response: { from: Number, number: 3 } }\nlimit: { requests: 9, unit: Second }";
    assert_eq!(rule(SOURCE, &policy(both)).cost, 3.into());
    let said = report(SOURCE, &policy(both));
    assert!(said.contains("approximated: cost.response"), "{said}");
}
