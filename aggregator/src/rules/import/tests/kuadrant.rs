//! Kuadrant's and Limitador's limits.

use limiter::time::Micros;

use super::*;

const SOURCE: Source = Source::Kuadrant;

fn limit(condition: &str) -> String {
    let condition = serde_json::to_string(condition).unwrap();
    format!(
        "- {{ namespace: n, name: l, max_value: 5, seconds: 30, conditions: [ {condition} ] }}\n"
    )
}

#[test]
fn a_condition_holds_when_it_holds_there() {
    let request = request(
        "POST https://api.example.com/toys/1",
        &["x-key: k"],
        "192.0.2.7",
    );
    for (condition, expected) in [
        ("request.method == 'POST'", true),
        ("request.method != 'POST'", false),
        ("'POST' == request.method", true),
        ("request.method in ['GET', 'POST']", true),
        ("request.url_path.startsWith('/toys')", true),
        (
            "request.url_path.endsWith(\"/1\") && request.host == 'api.example.com'",
            true,
        ),
        (
            "request.url_path.contains('cars') || request.host.endsWith('.example.com')",
            true,
        ),
        ("!(request.url_path.matches('^/toys/.*$'))", false),
        ("request.headers['x-key'] == 'k'", true),
        ("request.headers['x-none'] != 'k'", false),
        (
            "'x-key' in request.headers && !has(request.headers.x_none)",
            true,
        ),
        ("descriptors[0].x_none.startsWith('a')", false),
        ("source.remote_address == '192.0.2.7'", true),
    ] {
        let rules = rules(SOURCE, &limit(condition));
        assert_eq!(!met(&rules, &request).is_empty(), expected, "{condition}");
    }
}

#[test]
fn what_cannot_be_looked_at_drops_the_limit() {
    for (condition, said) in [
        (
            "auth.identity.group == 'a'",
            "auth.identity.group is nothing that a rule looks at",
        ),
        (
            "request.method == 1",
            "column 19 of the expression: expected a text",
        ),
        ("request.method", "expected ==, !="),
        ("request.url_path.size() > 3", "expected a text in quotes"),
    ] {
        let said_of = report(SOURCE, &limit(condition));
        assert!(
            said_of.contains(said) && said_of.contains("1 dropped"),
            "{said_of}"
        );
    }
}

#[test]
fn every_rate_of_a_limit_is_a_rule_that_all_its_counters_name() {
    let text = "# map: auth.identity.userid=header.x-user
kind: RateLimitPolicy
metadata: { name: p }
spec:
  targetRef: { kind: HTTPRoute, name: r }
  limits:
    per-user:
      rates: [ { limit: 5, window: 10s }, { limit: 100, window: 1h30m } ]
      counters: [ { expression: auth.identity.userid } ]
      when: [ { predicate: \"request.method == 'POST'\" } ]
";
    let rules = rules(SOURCE, text);
    let request = request("POST /", &["x-user: u"], "");
    assert_eq!(met(&rules, &request), ["p/per-user u", "p/per-user-2 u"]);
    assert_eq!(met(&rules, &super::request("POST /", &[], "")), [""; 0]);
    let second = rules.rule(1).unwrap();
    assert_eq!(second.quota.limit.get(), 100);
    assert_eq!(second.quota.window.fixed(), Some(Micros::from_secs(5_400)));
    assert!(!second.count_denied);
}

#[test]
fn limits_of_limitador_keep_their_namespace_and_variables() {
    let text = "# map: user=header.x-user\n- { namespace: n, max_value: 5, seconds: 30, conditions: [], variables: [ user ] }\n";
    let file = file(SOURCE, text);
    assert_eq!(file.domain, "n");
    assert_eq!(
        file.rules[0].quota.window.fixed(),
        Some(Micros::from_secs(30))
    );
    let rules = rules(SOURCE, text);
    assert_eq!(met(&rules, &request("GET /", &["x-user: u"], "")), ["n u"]);
}
