//! What Envoy knows of a request, and a client cannot say of itself: the country that
//! a filter in front of ours looked up, the claims of a token that one has verified.

use limiter::rule::{Attribute, Condition, Expect, KeyPart, Rule};
use serde_json::{Value, json};
use weir_tests::envoy::{Envoy, weir_filter};
use weir_tests::envoy_config::Setup;
use weir_tests::region::Region;
use weir_tests::rules::per_window;
use weir_tests::wait::wait_until;

const LONG: u64 = 24 * 3600;

/// Signed with the key below (HS256): subject alice, bob, carol; alice and bob on the
/// plan "free", carol on "pro".
const ALICE: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImsiLCJ0eXAiOiJKV1QifQ.eyJpc3MiOiJ3ZWlyIiwic3ViIjoiYWxpY2UiLCJwbGFuIjoiZnJlZSJ9.xNz1I8C8E32dADzRRow40zLgd1KtLMiMgdSe9Hb5VCs";
const BOB: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImsiLCJ0eXAiOiJKV1QifQ.eyJpc3MiOiJ3ZWlyIiwic3ViIjoiYm9iIiwicGxhbiI6ImZyZWUifQ.FolhParMe_75j_O313_N5RU2uOMDfR2WQRlk_WqBFpE";
const CAROL: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImsiLCJ0eXAiOiJKV1QifQ.eyJpc3MiOiJ3ZWlyIiwic3ViIjoiY2Fyb2wiLCJwbGFuIjoicHJvIn0.nhJ8gWkgQKmRG_4wIxTO90axO_BeowOi-aXEs0VsvAw";
const KEY: &str = r#"{"keys": [{"kty": "oct", "alg": "HS256", "kid": "k", "k": "d2VpciB0ZXN0IHNlY3JldCwgdGhpcnR5LXR3byBieXRl"}]}"#;

const CONFIG: &str = r#"{"attributes": {"country": "X-Country", "jwt": "x-jwt-payload"}}"#;

/// Looks a country up, as a geography filter would: it overwrites what a client sent.
fn in_country(country: &str) -> Value {
    json!({
        "name": "envoy.filters.http.header_mutation",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
            "mutations": { "request_mutations": [{ "append": {
                "header": { "key": "x-country", "value": country },
                "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
            }}]},
        },
    })
}

/// Verifies tokens where there are any, and hands their payload on.
fn verified() -> Value {
    json!({
        "name": "envoy.filters.http.jwt_authn",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
            "providers": { "weir": {
                "issuer": "weir",
                "local_jwks": { "inline_string": KEY },
                "forward_payload_header": "x-jwt-payload",
            }},
            "rules": [{
                "match": { "prefix": "/" },
                "requires": { "requires_any": { "requirements": [
                    { "provider_name": "weir" }, { "allow_missing": {} },
                ]}},
            }],
        },
    })
}

fn envoy(rule: Rule, before: Vec<Value>) -> (Envoy, Region) {
    let region = Region::start(vec![rule]);
    let setup = Setup::new(weir_filter(CONFIG)).before(before);
    let envoy = Envoy::start(setup.aggregator(region.address()));
    wait_until("both VMs run the rules", || {
        region.sources_up_to_date() == 2
    });
    (envoy, region)
}

#[test]
fn a_country_is_what_the_edge_says_and_not_the_client() {
    let mut rule = per_window("abroad", 1, LONG);
    rule.conditions = vec![Condition::Attribute {
        attribute: Attribute::Country,
        expect: Expect::OneOf(vec!["NO".to_owned()]),
    }];
    let (home, _region) = envoy(rule.clone(), vec![in_country("DE")]);
    let claimed = [("x-country", "NO")];
    let at_home: Vec<u16> = (0..3).map(|_| home.get("/", &claimed).status).collect();
    assert_eq!(at_home, [200; 3], "the rule is for others");
    let (abroad, _region) = envoy(rule, vec![in_country("NO")]);
    let claimed = [("x-country", "DE")];
    let abroad: Vec<u16> = (0..3).map(|_| abroad.get("/", &claimed).status).collect();
    assert_eq!(abroad, [200, 429, 429]);
}

#[test]
fn a_client_is_counted_by_the_subject_of_its_verified_token() {
    let claim = |name: &str| Attribute::Jwt(name.to_owned());
    let mut rule = per_window("per-user", 2, LONG);
    rule.key = vec![KeyPart::Attribute(claim("sub"))];
    rule.conditions = vec![Condition::Attribute {
        attribute: claim("plan"),
        expect: Expect::OneOf(vec!["free".to_owned()]),
    }];
    let (envoy, _region) = envoy(rule, vec![verified()]);
    let status = |token: &str| {
        let bearer = format!("Bearer {token}");
        envoy.get("/", &[("authorization", &bearer)]).status
    };
    let alice: Vec<u16> = (0..3).map(|_| status(ALICE)).collect();
    assert_eq!(alice, [200, 200, 429]);
    assert_eq!(status(BOB), 200, "another subject has its own limit");
    let carol: Vec<u16> = (0..3).map(|_| status(CAROL)).collect();
    assert_eq!(carol, [200; 3], "another plan has none");
    let (front, _) = ALICE.rsplit_once('.').expect("a signature");
    assert_eq!(status(&format!("{front}.{}", "A".repeat(43))), 401);
    let payload = ALICE.split('.').nth(1).expect("a payload");
    let invented: Vec<u16> = (0..3)
        .map(|_| envoy.get("/", &[("x-jwt-payload", payload)]).status)
        .collect();
    assert_eq!(invented, [200; 3], "a payload without a token is nobody's");
}
