//! One instance: rules in, requests in, decisions out.

use limiter::quota::{Algorithm, Quota};
use limiter::rule::{Cost, KeyPart, Rule, Scope, StatusMatch};
use limiter::time::Micros;
use limiter::window::Window;
use limiter::wire;
use prost::Message;
use serde_json::Value;
use weir_component::rules::{HEADER, alone, compiled, set};
use weir_component::wit::weir::limiter::types::{Response, Tier};
use weir_component::{Attempt, Instance, KeyCheck, START_US, Verdict, request, settings, unpacked};

/// An instance with these rules.
fn ruled(rules: Vec<Rule>) -> Instance {
    let mut instance = Instance::start(1);
    let taken = instance.set_rules(&compiled(&set(1, rules)));
    assert_eq!(taken, Ok(1));
    instance
}

#[test]
fn without_settings_or_rules_everything_passes_and_nothing_is_due() {
    let mut instance = Instance::new();
    let decision = instance.check(&request(HEADER, "a"), Attempt::First, START_US);
    assert_eq!(decision.verdict, Verdict::Pass);
    assert!(
        instance
            .set_rules(&[])
            .expect_err("no source")
            .contains("not configured")
    );
    assert!(instance.counter_of("per-key", &["a"]).is_err());
    let due = instance.call(|source, store| source.call_drain(store, START_US, true));
    assert!(due.is_empty());
    let mut instance = Instance::start(1);
    let decision = instance.check(&request(HEADER, "a"), Attempt::First, START_US);
    assert_eq!(decision.verdict, Verdict::Pass);
}

#[test]
fn settings_are_refused_with_the_field_and_what_would_be_right() {
    let refused =
        |settings| Instance::new().call(|source, store| source.call_configure(store, &settings));
    let mut few = settings(1);
    few.keys_max = Some(15);
    assert_eq!(
        refused(few),
        Err("`keys-max` is 15, must be 16 to 10000000".to_owned())
    );
    let mut often = settings(1);
    often.flush_interval_ms = Some(49);
    assert_eq!(
        refused(often),
        Err("`flush-interval-ms` is 49, must be 50 to 60000".to_owned())
    );
    let mut nowhere = settings(1);
    nowhere.pop = Some("a\nb".to_owned());
    assert!(
        refused(nowhere)
            .expect_err("no name")
            .starts_with("`pop` must be printable")
    );
}

#[test]
fn rules_are_refused_whole_with_the_rule_and_the_field_and_those_in_force_stay() {
    let mut instance = ruled(vec![alone(1)]);
    let mut sent = wire::RuleSet::from(&set(2, vec![alone(5)]));
    for rule in &mut sent.rules {
        rule.window_us = 0;
    }
    let refused = instance
        .set_rules(&sent.encode_to_vec())
        .expect_err("a broken rule");
    assert!(
        refused.contains("per-key") && refused.contains("window_us"),
        "{refused}"
    );
    let refused = instance.set_rules(b"rules: []").expect_err("no rules");
    assert!(refused.contains("weir rules compile"), "{refused}");
    assert_eq!(
        instance.call(|source, store| source.call_revision(store)),
        1
    );
    let decision = instance.check(&request(HEADER, "a"), Attempt::First, START_US);
    assert_eq!((decision.verdict, decision.limit), (Verdict::Allow, 1));
}

#[test]
fn what_the_rules_need_is_told_and_nothing_else() {
    let mut rule = alone(10);
    rule.key.push(KeyPart::Address {
        v4_bits: 32,
        v6_bits: 64,
    });
    rule.cost = Cost::ResponseHeader {
        name: "x-cost".to_owned(),
        max: 10,
        upfront: 1,
        default: 1,
    };
    let needs = ruled(vec![rule]).call(|source, store| source.call_needed(store));
    assert!(needs.peer && !needs.method && !needs.host && !needs.path);
    assert_eq!(
        (&*needs.headers, &*needs.response_headers),
        (&[HEADER.to_owned()][..], &["x-cost".to_owned()][..])
    );
}

/// The rule of a vector, for each instance on its own; what a request costs stands in
/// `x-cost`.
fn rule_of(case: &Value) -> Rule {
    let number = |name: &str| case[name].as_u64().and_then(core::num::NonZeroU64::new);
    let algorithm = match case["algorithm"].as_str() {
        Some("fixed_window") => Algorithm::FixedWindow,
        Some("sliding_window") => Algorithm::SlidingWindow,
        _ => Algorithm::TokenBucket,
    };
    let window = number("window_ms").and_then(|ms| Window::new(Micros::from_millis(ms.get())));
    let limit = number("limit").expect("a limit");
    let quota = Quota::new(limit, window.expect("a window"), algorithm);
    let quota = number("burst").map_or(quota, |burst| quota.with_burst(burst));
    let mut rule = Rule::new("vector", quota);
    rule.key = vec![KeyPart::Header(HEADER.to_owned())];
    rule.scope = Scope::Pop;
    rule.cost = Cost::RequestHeader {
        name: "x-cost".to_owned(),
        max: 1_000_000_000,
        default: 0,
    };
    rule
}

#[test]
fn the_published_vectors_are_answered_exactly_by_either_way_to_check() {
    let cases = include_str!("../../../cases/algorithms.json");
    let cases: Value = serde_json::from_str(cases).expect("JSON");
    let mut steps = 0;
    for case in cases.as_array().expect("cases") {
        let rule = rule_of(case);
        let (mut whole, mut packed) = (ruled(vec![rule.clone()]), ruled(vec![rule]));
        for step in case["steps"].as_array().expect("steps") {
            let place = format!("{} {step}", case["name"]);
            let number = |name: &str| step[name].as_u64();
            let now = number("at_ms").expect("a time") * 1_000;
            let key = step["key"].as_str().expect("a key");
            let cost = number("cost").expect("a cost");
            let mut asked = request(HEADER, key);
            let header = ("x-cost".to_owned(), cost.to_string().into_bytes());
            asked.headers.push(header);
            let decision = whole.check(&asked, Attempt::First, now);
            let allow = step["allow"] == true;
            assert_eq!(decision.verdict == Verdict::Allow, allow, "{place}");
            assert_eq!(Some(decision.remaining), number("remaining"), "{place}");
            let wait = decision.wait.map(|wait| wait.div_ceil(1_000));
            let right = number("retry_after_ms").filter(|_| !allow);
            assert_eq!(wait, right, "{place}");
            let counter = packed.counter_of("vector", &[key]).expect("a counter");
            let (verdict, wait) = packed.check_key(counter, cost, Attempt::First, now);
            let wait = wait.filter(|_| !allow);
            assert_eq!(
                (verdict, wait),
                (decision.verdict, decision.wait),
                "{place}"
            );
            steps += 1;
        }
    }
    assert!(steps > 500, "the vectors are there: {steps}");
}

#[test]
fn a_batch_answers_as_single_checks_do_one_after_the_other() {
    let (mut one, mut many) = (ruled(vec![alone(3)]), ruled(vec![alone(3)]));
    let keys: Vec<_> = (0..10)
        .map(|n| {
            one.counter_of("per-key", &[&format!("{}", n % 3)])
                .expect("a counter")
        })
        .collect();
    let checks: Vec<KeyCheck> = (0..64_u64)
        .map(|n| KeyCheck {
            counter: keys[n as usize % 10],
            cost: n % 3,
        })
        .collect();
    let singles: Vec<_> = checks
        .iter()
        .map(|check| one.check_key(check.counter, check.cost, Attempt::First, START_US))
        .collect();
    let batch = many
        .call(|source, store| source.call_check_batch(store, &checks, Attempt::First, START_US));
    let batch: Vec<_> = batch.into_iter().map(unpacked).collect();
    assert_eq!(batch, singles);
    let of = |verdict| singles.iter().filter(|(one, _)| *one == verdict).count();
    assert!(of(Verdict::Pass) > 0 && of(Verdict::Allow) > 0 && of(Verdict::Deny) > 0);
}

#[test]
fn a_counter_has_the_name_that_every_other_host_gives_it() {
    let mut by_address = alone(5);
    by_address.name = "per-address".to_owned();
    by_address.key = vec![
        KeyPart::Address {
            v4_bits: 24,
            v6_bits: 64,
        },
        KeyPart::Header(HEADER.to_owned()),
    ];
    let rules = set(1, vec![alone(5), by_address]);
    let mut instance = Instance::start(1);
    assert_eq!(instance.set_rules(&compiled(&rules)), Ok(1));
    for (rule, values) in [
        ("per-key", &["a"][..]),
        ("per-address", &["192.0.2.7", "é"]),
    ] {
        let counter = instance.counter_of(rule, values).expect("a counter");
        let place = rules.by_name(rule).expect("the rule");
        let native: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let key = rules.key_of(place, &native).expect("a key");
        assert_eq!(
            u128::from(counter.high) << 64 | u128::from(counter.low),
            key.0
        );
        assert_eq!(Some(counter.rule), rules.id(place).map(|id| id.0));
    }
    for (rule, values, why) in [
        ("nobody", &["a"][..], "no rule \"nobody\""),
        ("per-key", &["a", "b"], "takes 1 values, got 2"),
        ("per-address", &["elsewhere", "a"], "no address"),
    ] {
        let refused = instance.counter_of(rule, values).expect_err("no counter");
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn a_denied_client_is_answered_as_by_every_other_host() {
    let mut instance = ruled(vec![alone(1)]);
    let mut check = || {
        instance.check(
            &request(HEADER, "a"),
            Attempt::First,
            START_US + 600_000_000,
        )
    };
    assert_eq!(check().verdict, Verdict::Allow);
    let denied = check();
    assert_eq!(
        (denied.verdict, denied.tier, &*denied.rule),
        (Verdict::Deny, Tier::Local, "per-key")
    );
    let refusal = denied.refusal.expect("an answer");
    assert_eq!(refusal.status, 429);
    let header = |name: &str| {
        refusal
            .headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
    };
    assert_eq!(header("retry-after"), Some("3000"));
    assert_eq!(header("ratelimit"), Some("\"per-key\";r=0;t=3000"));
    assert!(refusal.body.contains("quota-exceeded"), "{}", refusal.body);
}

#[test]
fn what_a_response_gives_back_can_be_spent_again() {
    let mut rule = alone(1);
    rule.refund = vec![StatusMatch::Class(5)];
    let mut instance = ruled(vec![rule]);
    let first = instance.check(&request(HEADER, "a"), Attempt::First, START_US);
    let ticket = first.ticket.expect("its response matters");
    let failed = Response {
        status: 503,
        headers: Vec::new(),
    };
    for _ in 0..2 {
        instance.call(|source, store| source.call_settle(store, ticket, Some(&failed), START_US));
    }
    let second = instance.check(&request(HEADER, "a"), Attempt::First, START_US);
    assert_eq!(second.verdict, Verdict::Allow);
    let ticket = second.ticket.expect("its response matters");
    instance.call(|source, store| source.call_settle(store, ticket, None, START_US));
    let third = instance.check(&request(HEADER, "a"), Attempt::First, START_US);
    assert_eq!(third.verdict, Verdict::Deny);
    assert_eq!(instance.metric("weir_responses_unseen_total", START_US), 1);
    assert_eq!(instance.metric("weir_requests_total", START_US), 3);
}
