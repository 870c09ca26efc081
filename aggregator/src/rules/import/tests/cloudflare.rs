//! Cloudflare's rules: what they match, and what they count per.

use limiter::{rule::Action, time::Micros};

use super::*;

const SOURCE: Source = Source::Cloudflare;

fn ruleset(expression: &str, characteristics: &str) -> String {
    let expression = serde_json::to_string(expression).unwrap();
    format!(
        r#"[{{"description": "r", "expression": {expression}, "action": "block", "ratelimit": {{
        "characteristics": [{characteristics}], "period": 60, "requests_per_period": 10,
        "mitigation_timeout": 600}}}}]"#
    )
}

fn matches(expression: &str, request: &Described) -> bool {
    !met(
        &rules(SOURCE, &ruleset(expression, r#""cf.colo.id""#)),
        request,
    )
    .is_empty()
}

#[test]
fn an_expression_matches_what_it_matches_there() {
    let request = request(
        "POST https://api.example.com/v1/login.php?q=1",
        &["user-agent: curl/8", "x-key: k", "cookie: sid=s"],
        "192.0.2.7",
    );
    for (expression, expected) in [
        ("true", true),
        (r#"http.request.uri.path eq "/v1/login.php""#, true),
        (r#"http.request.uri.path contains "/login""#, true),
        (r#"http.request.uri.path contains "1/lo""#, true),
        (r#"http.request.uri.path contains "logout""#, false),
        (r#"starts_with(http.request.uri.path, "/v1/")"#, true),
        (r#"starts_with(http.request.uri.path, "/v")"#, true),
        (r#"starts_with(http.request.uri.path, "/v2")"#, false),
        (r#"ends_with(http.request.uri.path, ".php")"#, true),
        (r#"http.request.uri.path wildcard "/v*/*.php""#, true),
        (r#"http.request.uri.path matches "^/v1/.*\\.php$""#, true),
        (r#"http.request.uri.path.extension in {"php" "asp"}"#, true),
        (
            r#"http.request.method in {"POST" "PUT"} and http.host eq "api.example.com""#,
            true,
        ),
        (
            r#"http.request.method eq "GET" or http.user_agent contains "curl""#,
            true,
        ),
        (r#"not http.user_agent contains "curl""#, false),
        (r#"(http.host eq "a" or http.host eq "b") and true"#, false),
        (r#"ip.src in {192.0.2.0/24 2001:db8::/32}"#, true),
        (r#"ip.src ne 192.0.2.7"#, false),
        (r#"http.request.headers["x-key"][0] eq "k""#, true),
        (
            r#"any(http.request.headers["X-Key"][*] contains "k")"#,
            true,
        ),
        (r#"any(http.request.headers["x-none"][*] ne "k")"#, false),
        (r#"http.request.headers["x-none"][0] ne "k""#, true),
        (r#"len(http.request.headers["x-key"]) > 0"#, true),
        (r#"len(http.request.headers["x-none"]) eq 0"#, true),
        (r#"http.referer eq """#, true),
        (r#"http.referer ne """#, false),
        (
            r#"len(http.user_agent) > 0 and len(http.referer) == 0"#,
            true,
        ),
        (
            r#"http.request.cookies["sid"][0] eq "s" && http.request.uri.args["q"][0] eq "1""#,
            true,
        ),
        (
            r#"http.host eq "api.example.com" xor http.request.method eq "POST""#,
            false,
        ),
        (
            r#"!(http.host eq "x") and lower(http.host) eq "api.example.com""#,
            true,
        ),
        (
            r#"http.request.method eq "GET" or http.request.method eq "PUT" and true"#,
            false,
        ),
        (r##"http.request.uri.path eq r#"/v1/login.php"#"##, true),
    ] {
        assert_eq!(matches(expression, &request), expected, "{expression}");
    }
}

#[test]
fn what_a_rule_cannot_look_at_drops_the_rule_and_never_a_part_of_it() {
    for (expression, said) in [
        (
            r#"http.request.uri.path eq "/" and cf.bot_management.score lt 30"#,
            "dropped: column 34 of the expression: cf.bot_management.score is nothing that a rule looks at",
        ),
        ("not ssl", "column 5 of the expression: ssl is nothing"),
        ("ip.src in $office", "a list that is kept elsewhere"),
        (
            r#"http.request.uri.path matches "^/(a|b)""#,
            "no regular expressions",
        ),
        (
            r#"http.request.uri.path eq "/a*""#,
            "a `*`, which a rule takes for any text",
        ),
        (
            r#"http.request.uri.path eq "/a" and"#,
            "column 31 of the expression: expected a field",
        ),
        ("(true", "expected `)`"),
        ("http.response.code eq 401", "stands in the response"),
    ] {
        let text = ruleset(expression, r#""cf.colo.id""#);
        let report = report(SOURCE, &text);
        assert!(report.contains(said), "{report}");
        assert!(
            report.contains("0 exact, 0 approximated, 1 dropped"),
            "{report}"
        );
    }
}

#[test]
fn a_missing_value_is_a_count_of_its_own_and_not_the_empty_one() {
    let text = ruleset(
        "true",
        r#""cf.colo.id", "ip.src", "http.request.headers[\"x-key\"]""#,
    );
    let rules = rules(SOURCE, &text);
    let counter = |headers: &[&str]| {
        let hits = rules.resolve(&request("GET /", headers, "192.0.2.7")).hits;
        hits[0].key
    };
    let (missing, empty, some) = (counter(&[]), counter(&["x-key:"]), counter(&["x-key: k"]));
    assert!(missing != empty && empty != some && some != missing);
    assert_eq!(counter(&[]), missing);
    let request = request("GET /", &[], "192.0.2.7");
    assert_eq!(met(&rules, &request), ["r 192.0.2.7 (missing)"]);
}

#[test]
fn the_mitigation_timeout_is_the_penalty_and_zero_is_none() {
    let block = rule(SOURCE, &ruleset("true", r#""cf.colo.id""#));
    assert_eq!(block.penalty, Micros::from_secs(600));
    assert_eq!((block.quota.limit.get(), block.action), (10, Action::Deny));
    assert_eq!(block.quota.window.fixed(), Some(Micros::from_secs(60)));
    let throttle = ruleset("true", r#""cf.colo.id""#).replace("600", "0");
    assert_eq!(rule(SOURCE, &throttle).penalty, Micros::ZERO);
    let log = ruleset("true", r#""cf.colo.id""#).replace("block", "log");
    assert_eq!(rule(SOURCE, &log).action, Action::Shadow);
}

#[test]
fn a_rule_that_counts_something_else_than_it_limits_is_dropped() {
    let counting = |expression: &str| {
        let text = ruleset(r#"http.request.uri.path eq "/login""#, r#""cf.colo.id""#);
        let expression = serde_json::to_string(expression).unwrap();
        let field = format!(r#""counting_expression": {expression}, "period""#);
        report(SOURCE, &text.replace(r#""period""#, &field))
    };
    assert!(counting("").contains("1 exact"));
    assert!(counting(r#"(http.request.uri.path  eq "/login")"#).contains("1 exact"));
    let other = counting(r#"http.request.uri.path eq "/login" and http.response.code eq 401"#);
    assert!(other.contains("counting_expression: column 39 of the expression: http.response.code stands in the response"), "{other}");
    assert!(counting("true").contains("counts the requests it limits, and no others"));
}
