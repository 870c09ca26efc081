//! What the region admits and lends never comes to more than there is.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod common;

use std::sync::Arc;

use common::{Region, SEEDS, at, counter, query, rule, rules, settings, source};
use limiter::{
    bound::{Fleet, Over},
    decision::Verdict,
    edge::Limiter,
    quota::Algorithm,
    rule::Action,
    ruleset::RuleSet,
    time::Micros,
};
use proptest::{collection::vec, prelude::*};

/// What happens next at one of the sources, or at the region itself.
#[derive(Clone, Copy, Debug)]
enum Step {
    Request { source: usize, many: u64 },
    Check { many: u64 },
    Wait { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..5_usize, 1..8_u64).prop_map(|(source, many)| Step::Request { source, many }),
        2 => (1..4_u64).prop_map(|many| Step::Check { many }),
        2 => (0..900_u64).prop_map(|ms| Step::Wait { ms }),
    ]
}

struct World {
    rules: Arc<RuleSet>,
    region: Region,
    sources: Vec<Limiter>,
    now_ms: u64,
    /// When each hit was admitted, and in how much of the window's.
    admitted: Vec<u64>,
}

impl World {
    fn new(limit: u64, algorithm: Algorithm) -> Self {
        let rules = rules(1, vec![rule(limit, 10_000, algorithm)]);
        let mut world = Self {
            region: Region::new(&rules, SEEDS),
            sources: (1..=5)
                .map(|number| source(number, &rules, settings()))
                .collect(),
            now_ms: 0,
            admitted: Vec::new(),
            rules,
        };
        // Long enough for everybody to be known.
        for _ in 0..5 {
            world.take(Step::Wait { ms: 1_000 });
        }
        world
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Request { source, many } => (0..many).for_each(|_| self.request(source)),
            Step::Check { many } => (0..many).for_each(|_| self.check()),
            Step::Wait { ms } => self.now_ms += ms,
        }
        for limiter in &mut self.sources {
            self.region.serve(limiter, at(self.now_ms));
        }
    }

    fn request(&mut self, source: usize) {
        let query = query(&self.rules, "a");
        let limiter = &mut self.sources[source];
        let mut verdict = limiter.decide(&query, at(self.now_ms));
        if matches!(verdict, Verdict::Hold { .. }) {
            self.region.serve(limiter, at(self.now_ms));
            verdict = limiter.decide_held(&query, at(self.now_ms), true);
        }
        self.note(verdict);
    }

    fn check(&mut self) {
        let query = query(&self.rules, "a");
        let (ledger, log) = (&mut self.region.ledger, &mut self.region.log);
        let verdict = ledger.check(&query, at(self.now_ms), log);
        self.note(verdict);
    }

    fn note(&mut self, verdict: Verdict) {
        if matches!(verdict, Verdict::Allow(_)) {
            self.admitted.push(self.now_ms);
        }
    }

    /// The most that this fleet may admit over the limit.
    fn over(&self) -> u64 {
        let fleet = Fleet {
            sources: 5,
            round_trip: Micros::ZERO,
            regions: 1,
            above: Micros::ZERO,
        };
        Over::of(self.rules.rule(0).unwrap(), fleet).hits()
    }

    /// What is left of the limit by the books, less what is lent, in hits.
    fn spare(&self) -> i64 {
        let key = counter(&self.rules, "a");
        let audit = self.region.ledger.audit(0, key, at(self.now_ms)).unwrap();
        (audit.room_micro - i64::try_from(audit.lent_micro).unwrap()).div_euclid(1_000_000)
    }
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        Just(Algorithm::FixedWindow),
        Just(Algorithm::SlidingWindow),
        Just(Algorithm::TokenBucket),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Nothing becomes free within a fixed window, so that nothing is lent twice;
    /// what is left are debts.
    #[test]
    fn a_fixed_window_admits_its_limit_and_no_more_than_its_debts(
        limit in 1..400_u64,
        steps in vec(step(), 1..120),
    ) {
        let mut world = World::new(limit, Algorithm::FixedWindow);
        for step in steps {
            world.take(step);
        }
        for window in world.admitted.chunk_by(|one, other| one / 10_000 == other / 10_000) {
            let most = limit + world.over();
            prop_assert!(window.len() as u64 <= most, "{} of {most}", window.len());
        }
    }

    #[test]
    fn the_books_and_what_is_lent_stay_within_the_limit_and_its_tolerance(
        limit in 1..400_u64,
        algorithm in algorithm(),
        steps in vec(step(), 1..120),
    ) {
        let mut world = World::new(limit, algorithm);
        // A bucket that is full by the books gains nothing while hits are on their
        // way there: up to a flush's worth of what it truly gains meanwhile.
        let gained = match algorithm {
            Algorithm::TokenBucket => limit.div_ceil(10),
            Algorithm::FixedWindow | Algorithm::SlidingWindow => 0,
        };
        let most = world.over().max(limit.div_ceil(50)) + gained;
        let tolerated = i64::try_from(most).unwrap();
        for step in steps {
            world.take(step);
            prop_assert!(world.spare() >= -tolerated, "{} of {limit}", world.spare());
        }
    }
}

#[test]
fn a_check_admits_nothing_that_is_lent() {
    let mut world = World::new(9, Algorithm::FixedWindow);
    world.take(Step::Request { source: 0, many: 1 });
    let lent = world
        .region
        .ledger
        .audit(0, counter(&world.rules, "a"), at(world.now_ms));
    assert!(lent.unwrap().lent_micro > 0, "the source holds something");
    world.take(Step::Check { many: 20 });
    world.take(Step::Request {
        source: 0,
        many: 20,
    });
    assert!(world.admitted.len() <= 9, "{}", world.admitted.len());
}

#[test]
fn a_rule_that_only_watches_admits_what_it_would_deny_and_says_so() {
    let mut watching = rule(2, 60_000, Algorithm::FixedWindow);
    watching.action = Action::Shadow;
    let rules = rules(1, vec![watching]);
    let mut region = Region::new(&rules, SEEDS);
    let query = query(&rules, "a");
    let mut check = || region.ledger.check(&query, at(0), &mut region.log);
    let verdicts = [check(), check(), check()];
    let shadowed = verdicts.map(|verdict| match verdict {
        Verdict::Allow(decision) => Some(decision.shadowed),
        _ => None,
    });
    assert_eq!(shadowed, [Some(false), Some(false), Some(true)]);
}
