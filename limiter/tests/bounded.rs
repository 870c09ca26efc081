//! A flood of invented keys costs nobody else anything, and the seeds of hash
//! tables decide nothing.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::sync::Arc;

use common::{Region, SEEDS, at, query, rule, rules, settings, source};
use limiter::{
    decision::{Tier, Verdict},
    edge::{Limiter, Settings},
    quota::Algorithm,
    ruleset::RuleSet,
};
use prost::Message;

const KEYS_MAX: usize = 200;

#[test]
fn a_flood_of_invented_keys_forgets_nobody_who_is_over_the_limit_and_loses_no_hit() {
    let rules = rules(1, vec![rule(20, 3_600_000, Algorithm::SlidingWindow)]);
    let mut region = Region::new(&rules, SEEDS);
    let few = Settings {
        keys_max: KEYS_MAX,
        ..settings()
    };
    let mut limiter = source(1, &rules, few);
    let mut admitted = 0;
    let ask = |admitted: &mut u64,
               key: &str,
               region: &mut Region,
               limiter: &mut limiter::edge::Limiter,
               ms| {
        let query = query(&rules, key);
        let mut verdict = limiter.decide(&query, at(ms));
        if matches!(verdict, Verdict::Hold { .. }) {
            region.serve(limiter, at(ms));
            verdict = limiter.decide_held(&query, at(ms), true);
        }
        *admitted += u64::from(matches!(verdict, Verdict::Allow(_)));
        region.serve(limiter, at(ms));
    };
    for second in 0..5 {
        region.serve(&mut limiter, at(second * 1_000));
    }
    for request in 0..60 {
        ask(
            &mut admitted,
            "over",
            &mut region,
            &mut limiter,
            5_000 + request * 10,
        );
    }
    for invented in 0..3_000 {
        ask(
            &mut admitted,
            &format!("invented-{invented}"),
            &mut region,
            &mut limiter,
            6_000 + invented,
        );
    }
    let verdict = limiter.decide(&query(&rules, "over"), at(9_001));
    assert!(
        matches!(verdict, Verdict::Deny(_)),
        "denied, and nobody asked: {verdict:?}"
    );
    for flush in 0..5 {
        region.serve(&mut limiter, at(10_000 + flush * 1_000));
    }
    let stats = limiter.stats(at(20_000));
    assert!(stats.keys <= KEYS_MAX as u64);
    assert_eq!(region.hits() + stats.untracked, admitted);
}

/// A fleet of one source near and one far, and a region with little room.
struct Flooded {
    rules: Arc<RuleSet>,
    region: Region,
    sources: [Limiter; 2],
    admitted: u64,
    now: u64,
}

impl Flooded {
    const SOURCE_KEYS: usize = 200_000;
    const REGION_KEYS: u64 = 50_000;

    fn new() -> Self {
        let rules = rules(1, vec![rule(4, 3_600_000, Algorithm::SlidingWindow)]);
        let mut region = Region::new(&rules, SEEDS);
        region.ledger.set_keys_max(Self::REGION_KEYS);
        let few = Settings {
            keys_max: Self::SOURCE_KEYS,
            ..settings()
        };
        let sources = [1, 2].map(|number| source(number, &rules, few));
        let mut fleet = Self {
            rules,
            region,
            sources,
            admitted: 0,
            now: 0,
        };
        (0..5).for_each(|_| fleet.second());
        fleet
    }

    fn serve(&mut self) {
        for source in &mut self.sources {
            self.region.serve(source, at(self.now));
        }
    }

    fn second(&mut self) {
        self.now += 1_000;
        self.serve();
    }

    /// Asks the first source, or the second; true if it admits.
    fn asks(&mut self, which: usize, key: &str) -> bool {
        let query = query(&self.rules, key);
        let source = self.sources.get_mut(which).unwrap();
        let mut verdict = source.decide(&query, at(self.now));
        if matches!(verdict, Verdict::Hold { .. }) {
            self.region.serve(source, at(self.now));
            verdict = source.decide_held(&query, at(self.now), true);
        }
        let allowed = matches!(verdict, Verdict::Allow(_));
        self.admitted += u64::from(allowed);
        allowed
    }
}

#[test]
fn a_million_invented_keys_are_held_in_bounded_memory_and_free_nobody_and_are_reported() {
    let mut fleet = Flooded::new();
    let over: Vec<String> = (0..100).map(|n| format!("over-{n}")).collect();
    for key in &over {
        let admitted = (0..20).filter(|_| fleet.asks(0, key)).count();
        assert_eq!(admitted, 4, "{key}");
    }
    fleet.second();
    for invented in 0..1_000_000_u64 {
        fleet.asks(0, &format!("invented-{invented}"));
        if invented % 1_000 == 0 {
            fleet.now += 10;
            fleet.serve();
        }
    }
    (0..5).for_each(|_| fleet.second());
    let stats = fleet.sources.each_ref().map(|one| one.stats(at(fleet.now)));
    assert!(
        stats
            .iter()
            .all(|one| one.keys <= Flooded::SOURCE_KEYS as u64)
    );
    let partitions = u64::from(limiter::key::PARTITIONS);
    assert!(fleet.region.ledger.keys() as u64 <= Flooded::REGION_KEYS + partitions);
    for key in &over {
        assert!(!fleet.asks(0, key), "{key} at the source that knows it");
        assert!(!fleet.asks(1, key), "{key} at one that has to ask");
    }
    let crush = fleet.region.ledger.crush();
    let told = crush.evicted_keys + crush.untracked_hits;
    assert!(told > 500_000, "{crush:?}");
    let untracked: u64 = stats.iter().map(|one| one.untracked).sum();
    assert_eq!(fleet.region.hits() + untracked, fleet.admitted);
}

/// All bytes that go to and fro when the tables hash with these seeds.
fn conversation(edge: [u64; 4], ledger: [u64; 4]) -> Vec<Vec<u8>> {
    let several = (0..7).map(|place| {
        let mut rule = rule(30 + place, 10_000, Algorithm::SlidingWindow);
        rule.name = format!("rule-{place}");
        rule
    });
    let rules = rules(1, several.collect());
    let mut region = Region::new(&rules, ledger);
    let settings = Settings {
        hash_seeds: edge,
        keys_max: 300,
        ..settings()
    };
    let mut sources = [1, 2].map(|number| source(number, &rules, settings));
    let mut said = Vec::new();
    for step in 0..2_000_u64 {
        let now = at(step * 10);
        let limiter = sources.get_mut((step % 2) as usize).unwrap();
        let key = format!("key-{}", step * step % 97);
        limiter.decide(&query(&rules, &key), now);
        while let Some(outgoing) = limiter.poll_send(now) {
            let reply = region.sync(&outgoing, now).encode_to_vec();
            limiter.handle_reply(outgoing.id, &reply, now).unwrap();
            said.extend([outgoing.body, reply]);
        }
        region.ledger.sweep((step % 64) as u32, now);
    }
    said.extend(region.log.0);
    said.extend(
        region
            .ledger
            .hits_by_rule()
            .iter()
            .map(|sum| format!("{sum:?}").into_bytes()),
    );
    said
}

#[test]
fn no_message_reply_or_record_depends_on_the_order_of_a_hash_table() {
    let one = conversation(SEEDS, SEEDS);
    let other = conversation([9, 8, 7, 6], [5, 6, 7, 8]);
    assert!(one.len() > 100);
    assert_eq!(one, other);
}

#[test]
fn what_is_denied_ahead_of_the_region_is_denied_by_what_it_lent() {
    let rules = rules(1, vec![rule(1, 3_600_000, Algorithm::FixedWindow)]);
    let mut region = Region::new(&rules, SEEDS);
    let mut limiter = source(1, &rules, settings());
    region.serve(&mut limiter, at(0));
    let mut tiers = Vec::new();
    for ms in [5_000, 5_001, 5_002] {
        let query = query(&rules, "a");
        let mut verdict = limiter.decide(&query, at(ms));
        if matches!(verdict, Verdict::Hold { .. }) {
            region.serve(&mut limiter, at(ms));
            verdict = limiter.decide_held(&query, at(ms), false);
        }
        if let Verdict::Deny(decision) = verdict {
            tiers.push(decision.tier);
        }
    }
    assert_eq!(tiers, [Tier::Lease, Tier::Lease]);
}
