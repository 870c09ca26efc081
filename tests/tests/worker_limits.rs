//! Limits on real workerd: one isolate, and several that share one region of
//! Durable Objects.

use weir_tests::rules::per_header;
use weir_tests::upstream::Upstream;
use weir_tests::workerd::{Setup, Workerd, compiled};

#[test]
fn an_isolate_admits_the_limit_and_answers_the_rest_as_documented() {
    const LIMIT: u64 = 5;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", LIMIT, 86_400)]);
    let workerd = Workerd::start(Setup::new(&rules, origin.address()));
    for n in 0..LIMIT {
        let answer = workerd.get("/a", &[("x-api-key", "one")]);
        assert_eq!(answer.status, 200, "request {n}: {}", answer.text());
    }
    let refused = workerd.get("/a", &[("x-api-key", "one")]);
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"per-key\";q=5;w=86400")
    );
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert!(refused.text().contains("violated-policies"), "{refused:?}");
    assert_eq!(workerd.get("/a", &[("x-api-key", "two")]).status, 200);
    assert_eq!(workerd.get("/a", &[]).status, 200);
    assert_eq!(origin.seen(), 5 + 2);
}
