//! What is allowed on a key that is leased allocates nothing.

use std::sync::Arc;

use limiter::decision::{Decision, Tier, Verdict};
use limiter::key::HashSeed;
use limiter::list::List;
use limiter::rule::Condition;
use limiter::time::Micros;
use weir_tests::counting::{Counting, allocations};
use weir_tests::rules::per_header;
use weir_tests::warm::{HEADER, Keyed, Warm};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// As many as one flush takes.
const KEYS: usize = 4_000;

#[test]
fn an_allowed_decision_on_a_leased_key_allocates_nothing() {
    let rules = ["a", "b", "c", "d"].map(|name| per_header(name, HEADER, 1_000_000_000, 3_600));
    let mut warm = Warm::new(rules.into(), KEYS, 100);
    assert_eq!(decide_all(&mut warm), 0);
    assert_eq!(decide_all(&mut warm), 0);
    warm.flush();
    // Every key is noted anew for the next flush.
    assert_eq!(decide_all(&mut warm), 0);
}

#[test]
fn tiers_and_lists_of_keys_allocate_nothing_either() {
    let listed: Vec<String> = (0..KEYS).map(|key| format!("not-{key}")).collect();
    let listed = listed.iter().map(String::as_bytes);
    let list = Arc::new(List::of_values("vip", HashSeed::default(), listed));
    let vip = || Condition::KeyIn(Arc::clone(&list));
    let mut others = per_header("a", HEADER, 1_000_000_000, 3_600);
    others.when = vec![Condition::None(vec![vec![vip()]])];
    let mut rule = others.clone();
    rule.tier = Some("vip".to_owned());
    rule.when = vec![vip()];
    let mut warm = Warm::new(vec![others, rule], KEYS, 100);
    assert_eq!(decide_all(&mut warm), 0);
    assert_eq!(decide_all(&mut warm), 0);
}

/// Decides once for each key. Returns how many allocations that took.
fn decide_all(warm: &mut Warm) -> u64 {
    let before = allocations();
    for key in &warm.keys {
        warm.now = warm.now.after(Micros::new(1));
        let query = warm.limiter.rules().resolve(&Keyed(key));
        let verdict = warm.limiter.decide(&query, warm.now);
        let lent = |decision: &Decision| decision.tier == Tier::Lease;
        assert!(
            matches!(&verdict, Verdict::Allow(decision) if lent(decision)),
            "{key}: {verdict:?}"
        );
    }
    allocations() - before
}
