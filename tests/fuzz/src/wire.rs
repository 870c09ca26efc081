//! Messages between the edge and the region, and what is on record.

use core::num::NonZeroU64;
use std::sync::Arc;

use limiter::edge::{Identity, Limiter, Settings};
use limiter::key::{CounterKey, HashSeed};
use limiter::ledger::{Journal, Ledger};
use limiter::quota::{Algorithm, Quota};
use limiter::request::{Hit, Query};
use limiter::rule::Rule;
use limiter::ruleset::RuleSet;
use limiter::time::{Micros, Timestamp};
use limiter::window::Window;
use limiter::wire::{self, SyncReply, SyncRequest};
use prost::Message;

const SEEDS: [u64; 4] = [1, 2, 3, 4];
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

#[derive(Default)]
struct Log(Vec<Vec<u8>>);

impl Journal for Log {
    fn append(&mut self, record: &[u8]) -> u64 {
        self.0.push(record.to_vec());
        self.0.len() as u64
    }
}

/// The first byte says what the rest is: a request to the region, its reply, a record
/// or a set of rules.
pub fn run(data: &[u8]) {
    let Some((first, body)) = data.split_first() else {
        return;
    };
    match first {
        b'q' => request(body),
        b'a' => reply(body),
        b'r' => record(body),
        b's' => rule_set(body),
        _ => {}
    }
}

fn rules() -> Option<Arc<RuleSet>> {
    let window = Window::new(Micros::from_secs(60))?;
    let limit = NonZeroU64::new(100)?;
    let rule = |name, algorithm| Rule::new(name, Quota::new(limit, window, algorithm));
    let rules = vec![
        rule("fixed", Algorithm::FixedWindow),
        rule("sliding", Algorithm::SlidingWindow),
        rule("bucket", Algorithm::TokenBucket),
    ];
    let seed = HashSeed::default();
    RuleSet::new("fuzz", 1, Vec::new(), seed, rules)
        .ok()
        .map(Arc::new)
}

/// Whatever a source says, the books read back from the log as they are.
fn request(body: &[u8]) {
    let (Ok(request), Some(rules)) = (SyncRequest::decode(body), rules()) else {
        return;
    };
    let (mut ledger, mut log) = (Ledger::new(SEEDS), Log::default());
    ledger.set_rules(rules, NOW, &mut log);
    for step in 0..2 {
        let now = NOW.after(Micros::from_secs(step));
        if let Ok(reply) = ledger.sync(request.clone(), now, &mut log) {
            reply.encode_to_vec();
        }
    }
    let mut again = Ledger::new([5, 6, 7, 8]);
    for (position, record) in (1..).zip(&log.0) {
        let read = again.replay(position, record);
        assert_eq!(read, Ok(()), "a record of ours does not read back");
    }
    assert_eq!(again.hits_by_rule(), ledger.hits_by_rule());
    assert_eq!(again.keys(), ledger.keys());
    for partition in 0..limiter::key::PARTITIONS {
        ledger.sweep(partition, NOW.after(Micros::from_secs(3_600)));
    }
}

/// Whatever the region is said to have answered, a source goes on deciding.
fn reply(body: &[u8]) {
    let (Ok(mut reply), Some(rules)) = (SyncReply::decode(body), rules()) else {
        return;
    };
    let identity = Identity {
        source: 1,
        epoch: 1,
        pop: String::new(),
    };
    let settings = Settings {
        keys_max: 100,
        flush_interval: Micros::from_secs(1),
        hash_seeds: SEEDS,
    };
    let mut limiter = Limiter::new(identity, settings);
    let Some(first) = limiter.poll_send(NOW) else {
        return;
    };
    let known = SyncReply {
        message: first.id,
        now_us: NOW.as_micros(),
        rules: Some(wire::RuleSet::from(&*rules)),
        ..SyncReply::default()
    };
    let taken = limiter.handle_reply(first.id, &known.encode_to_vec(), NOW);
    assert_eq!(taken, Ok(()));
    for step in 1..4 {
        let now = NOW.after(Micros::from_millis(1_500 * step));
        let hits = (0..3).map(|rule| Hit {
            rule,
            key: CounterKey(u128::from(step)),
            cost: 1,
        });
        let query = Query {
            rules: Arc::clone(limiter.rules()),
            hits: hits.collect(),
        };
        limiter.decide(&query, now);
        while let Some(message) = limiter.poll_send(now) {
            reply.message = message.id;
            // Refused or taken: both are fine, and must leave it deciding.
            let _ = limiter.handle_reply(message.id, &reply.encode_to_vec(), now);
        }
        limiter.decide_held(&query, now, true);
    }
}

fn record(body: &[u8]) {
    let mut ledger = Ledger::new(SEEDS);
    let _ = ledger.replay(1, body);
    let _ = ledger.restore(0, 1, body);
    ledger.hits_by_rule();
}

/// Rules that are taken are sent on as they came.
fn rule_set(body: &[u8]) {
    let Ok(sent) = wire::RuleSet::decode(body) else {
        return;
    };
    let Ok(rules) = RuleSet::try_from(sent) else {
        return;
    };
    let again = RuleSet::try_from(wire::RuleSet::from(&rules));
    assert_eq!(again.as_ref().ok(), Some(&rules));
}
