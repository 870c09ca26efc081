//! What a rule may choose: that the region decides every request, or none.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::{num::NonZeroU64, sync::Arc};

use limiter::{
    decision::{Tier, Verdict},
    edge::{Identity, Limiter, Settings},
    key::HashSeed,
    ledger::{Journal, Ledger},
    quota::{Algorithm, Quota},
    request::{Hit, Query},
    rule::{Consistency, Rule},
    ruleset::RuleSet,
    time::{Micros, Timestamp},
    window::Window,
    wire::SyncRequest,
};
use prost::Message;

struct NoDisk(u64);

impl Journal for NoDisk {
    fn append(&mut self, _record: &[u8]) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// One source and its region, a millisecond apart.
struct Pair {
    source: Limiter,
    region: Ledger,
    disk: NoDisk,
    now: Timestamp,
}

impl Pair {
    fn new(consistency: Consistency, limit: u64) -> Self {
        let window = Window::new(Micros::from_secs(60)).unwrap();
        let limit = NonZeroU64::new(limit).unwrap();
        let mut rule = Rule::new("r", Quota::new(limit, window, Algorithm::FixedWindow));
        rule.consistency = consistency;
        let rules = RuleSet::new("d", 1, Vec::new(), HashSeed::default(), vec![rule]).unwrap();
        let rules = Arc::new(rules);
        let identity = Identity {
            source: 7,
            epoch: 1,
            pop: String::from("test"),
        };
        let settings = Settings {
            keys_max: 100,
            flush_interval: Micros::from_secs(1),
            hash_seeds: [1, 2, 3, 4],
        };
        let now = Timestamp::from_millis(1_700_000_040_000);
        let mut pair = Self {
            source: Limiter::new(identity, settings),
            region: Ledger::new([5, 6, 7, 8]),
            disk: NoDisk(0),
            now,
        };
        pair.source.set_rules(Arc::clone(&rules));
        pair.region.set_rules(rules, now, &mut pair.disk);
        pair.carry();
        pair
    }

    fn query(&self) -> Query {
        let rules = Arc::clone(self.source.rules());
        let key = rules.key_of(0, &[]).unwrap();
        Query {
            rules,
            hits: [Hit {
                rule: 0,
                key,
                cost: 1,
            }]
            .into_iter()
            .collect(),
        }
    }

    /// Carries what the source has to say, and what it is answered.
    fn carry(&mut self) -> usize {
        let mut carried = 0;
        while let Some(message) = self.source.poll_send(self.now) {
            let request = SyncRequest::decode(&*message.body).unwrap();
            let reply = self.region.sync(request, self.now, &mut self.disk).unwrap();
            self.now = self.now.after(Micros::from_millis(1));
            self.source
                .handle_reply(message.id, &reply.encode_to_vec(), self.now)
                .unwrap();
            carried += 1;
        }
        carried
    }

    /// One request, and what becomes of it; then a pause.
    fn asks_once(&mut self, pause_ms: u64) -> bool {
        let query = self.query();
        let mut verdict = self.source.decide(&query, self.now);
        for _ in 0..3 {
            self.carry();
            if let Verdict::Hold { .. } = verdict {
                verdict = self.source.decide_held(&query, self.now, false);
            }
        }
        self.now = self.now.after(Micros::from_millis(pause_ms));
        self.carry();
        matches!(verdict, Verdict::Allow(_))
    }

    /// Another party spends one hit in the region.
    fn spend_elsewhere(&mut self) {
        let query = self.query();
        self.region.check(&query, self.now, &mut self.disk);
    }
}

#[test]
fn the_region_decides_every_request_of_an_exact_rule() {
    let mut pair = Pair::new(Consistency::Exact, 3);
    for _ in 0..2 {
        let query = pair.query();
        let verdict = pair.source.decide(&query, pair.now);
        assert!(matches!(verdict, Verdict::Hold { .. }), "{verdict:?}");
        assert_eq!(pair.carry(), 1, "it is asked for");
        let verdict = pair.source.decide_held(&query, pair.now, false);
        assert!(
            matches!(verdict, Verdict::Allow(d) if d.tier == Tier::Region),
            "{verdict:?}"
        );
    }
    pair.spend_elsewhere();
    let query = pair.query();
    assert!(matches!(
        pair.source.decide(&query, pair.now),
        Verdict::Hold { .. }
    ));
    pair.carry();
    let verdict = pair.source.decide_held(&query, pair.now, false);
    assert!(matches!(verdict, Verdict::Deny(_)), "{verdict:?}");
}

#[test]
fn no_request_of_an_edge_rule_waits_and_the_last_total_is_kept() {
    let mut pair = Pair::new(Consistency::Edge, 3);
    let query = pair.query();
    assert!(matches!(
        pair.source.decide(&query, pair.now),
        Verdict::Allow(_)
    ));
    for _ in 0..2 {
        pair.spend_elsewhere();
    }
    pair.now = pair.now.after(Micros::from_secs(1));
    assert!(pair.carry() > 0, "the flush brings the total back");
    let verdict = pair.source.decide(&query, pair.now);
    assert!(
        matches!(verdict, Verdict::Deny(_)),
        "three are spent: {verdict:?}"
    );
}

#[test]
fn nothing_is_lent_on_an_edge_rule() {
    let mut pair = Pair::new(Consistency::Edge, 100);
    let query = pair.query();
    pair.source.decide(&query, pair.now);
    pair.now = pair.now.after(Micros::from_secs(1));
    pair.carry();
    let key = query.hits.first().unwrap().key;
    assert_eq!(pair.region.audit(0, key, pair.now).unwrap().lent_micro, 0);
}

#[test]
fn a_lone_client_gets_its_whole_limit_to_the_last_hit() {
    for consistency in [Consistency::Leased, Consistency::Exact] {
        for limit in 1..40 {
            for pause_ms in [0, 1, 7, 40, 300] {
                let mut pair = Pair::new(consistency, limit);
                let admitted = (0..limit + 10).filter(|_| pair.asks_once(pause_ms)).count();
                let what = format!("{consistency:?}, limit {limit}, pause {pause_ms} ms");
                assert_eq!(admitted as u64, limit, "{what}");
            }
        }
    }
}
