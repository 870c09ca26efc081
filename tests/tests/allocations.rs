//! What is allowed on a key that is leased allocates nothing.

use limiter::decision::{Tier, Verdict};
use limiter::time::Micros;
use weir_tests::counting::{Counting, allocations};
use weir_tests::rules::per_header;
use weir_tests::warm::{HEADER, Keyed, Warm};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KEYS: usize = 20_000;

#[test]
fn an_allowed_decision_on_a_leased_key_allocates_nothing() {
    let rules = ["a", "b", "c", "d"].map(|name| per_header(name, HEADER, 1_000_000_000, 3_600));
    let mut warm = Warm::new(rules.into(), KEYS, 100);
    let before = allocations();
    for _ in 0..10 {
        for key in &warm.keys {
            warm.now = warm.now.after(Micros::new(1));
            let query = warm.limiter.rules().resolve(&Keyed(key));
            let verdict = warm.limiter.decide(&query, warm.now);
            let Verdict::Allow(decision) = verdict else {
                panic!("{key}: {verdict:?}");
            };
            assert_eq!(decision.tier, Tier::Lease, "{key}");
        }
    }
    assert_eq!(allocations() - before, 0);
}
