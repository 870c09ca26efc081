//! Durable Objects as regions of an aggregator above them: what a Worker is told of it,
//! and what its objects say of how they stand with it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use limiter::rule::{Rule, Scope};
use serde_json::Value;

use crate::aggregator::Aggregator;
use crate::http::{self, Response};
use crate::rules::per_header;
use crate::wait::wait_until;
use crate::workerd::{OPERATOR_TOKEN, Setup, Workerd};

/// What rules that are put below have to have, for [`wait_for_rules`].
pub const PROBE: &str =
    "  - { name: probe, key: header.x-probe, limit: 1, window: 1d, hold: 1s }\n";

/// No rules are bundled, and the objects are regions of an aggregator above them.
#[must_use]
pub fn below(above: SocketAddr, region: &str, origin: SocketAddr) -> Setup {
    Setup::new(b"", origin)
        .variable("WEIR_UPSTREAM_URL", &format!("http://{above}"))
        .variable("WEIR_UPSTREAM_REGION", region)
}

/// The rule of [`PROBE`].
#[must_use]
pub fn probe() -> Rule {
    per_header("probe", "x-probe", 1, 24 * 3_600)
}

/// A limit for each API key over all regions, in a window that no test sees the end of.
#[must_use]
pub fn global_rule(limit: u64) -> Rule {
    let mut rule = per_header("ample", "x-api-key", limit, 24 * 3_600);
    rule.scope = Scope::Global;
    rule
}

/// Asks until so many requests with this API key were admitted. While an aggregator learns
/// who is there, the first of a key may be denied.
pub fn admit(workerd: &Workerd, key: &str, hits: u64) -> u64 {
    for _ in 0..hits {
        wait_until("one more is admitted", || workerd.statuses(key, 1) == [200]);
    }
    hits
}

/// What each object says of itself; none while they do not all answer.
#[must_use]
pub fn objects(workerd: &Workerd) -> Option<Vec<Value>> {
    let bearer = format!("Bearer {OPERATOR_TOKEN}");
    let request = http::get("/_weir/status", &[("authorization", &bearer)]);
    let answer = http::send(workerd.address(), &request).ok()?;
    serde_json::from_slice(&answer.body).ok()
}

/// The sum of a number over what all objects say of the aggregator above.
#[must_use]
pub fn upstream(workerd: &Workerd, number: &str) -> Option<u64> {
    let objects = objects(workerd)?;
    let numbers = objects.iter().map(|object| {
        let upstream = object.get("upstream")?;
        upstream.get(number)?.as_u64()
    });
    numbers.sum()
}

/// Asks every isolate until it denies what the rule [`PROBE`] denies.
pub fn wait_for_rules(workerd: &Workerd) {
    for (n, address) in workerd.addresses().iter().enumerate() {
        let request = http::get("/", &[("x-probe", &format!("of {n}"))]);
        wait_until("the isolate has the rules", || {
            http::send(*address, &request).is_ok_and(|answer| answer.status == 429)
        });
    }
}

/// Hits of each rule in an aggregator's books; none while it is away.
#[must_use]
pub fn hits(aggregator: &Aggregator) -> Option<BTreeMap<String, u64>> {
    Some(aggregator.metrics()?.by("weir_hits_total", "rule"))
}

/// Hits of one rule there.
#[must_use]
pub fn hits_of(aggregator: &Aggregator, rule: &str) -> Option<u64> {
    Some(hits(aggregator)?.get(rule).copied().unwrap_or(0))
}

/// Puts rules in force at an aggregator that has no rule file.
///
/// # Panics
/// If there is no answer.
#[must_use]
pub fn put_rules(aggregator: &Aggregator, rules: &str) -> Response {
    let headers = [("content-type", "application/yaml")];
    let request = http::request("PUT", "/v1/rules", &headers, rules.as_bytes());
    http::send(aggregator.address(), &request).expect("an answer")
}
