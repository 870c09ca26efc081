//! A region, its log and its sources, without a network between them.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test uses a part of it, and may stop at the first surprise"
)]

use std::{net::IpAddr, sync::Arc};

use limiter::{
    edge::{Identity, Limiter, Outgoing, Settings},
    key::{CounterKey, HashSeed, PARTITIONS},
    ledger::{Journal, Ledger},
    quota::{Algorithm, Quota},
    request::{Query, Request},
    rule::{KeyPart, Rule},
    ruleset::RuleSet,
    time::{Micros, Timestamp},
    window::Window,
    wire::{SyncReply, SyncRequest},
};
use prost::Message;

/// When tests begin: at the start of a minute.
pub const START: Timestamp = Timestamp::from_millis(1_700_000_040_000);

/// The hash seeds of everything, unless a test is about them.
pub const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// So many milliseconds after the start.
pub const fn at(millis: u64) -> Timestamp {
    START.after(Micros::from_millis(millis))
}

/// A rule that counts per value of a header.
pub fn rule(limit: u64, window_ms: u64, algorithm: Algorithm) -> Rule {
    let window = Window::new(Micros::from_millis(window_ms)).unwrap();
    let mut rule = Rule::new(
        "tested",
        Quota::new(limit.try_into().unwrap(), window, algorithm),
    );
    rule.key = vec![KeyPart::Header("x-key".to_owned())];
    rule
}

/// Rules in their `revision`-th version.
pub fn rules(revision: u64, rules: Vec<Rule>) -> Arc<RuleSet> {
    let set = RuleSet::new("test", revision, Vec::new(), HashSeed::default(), rules);
    Arc::new(set.unwrap())
}

/// A request of this key.
pub fn query(rules: &Arc<RuleSet>, key: &str) -> Query {
    rules.resolve(&Asked(key))
}

/// The counter of this key under the first rule.
pub fn counter(rules: &Arc<RuleSet>, key: &str) -> CounterKey {
    query(rules, key).hits.first().unwrap().key
}

struct Asked<'a>(&'a str);

impl Request for Asked<'_> {
    fn method(&self) -> &[u8] {
        b"GET"
    }

    fn host(&self) -> &[u8] {
        b"test"
    }

    fn path(&self) -> &[u8] {
        b"/"
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        (name == "x-key").then_some(self.0.as_bytes())
    }

    fn address(&self) -> Option<IpAddr> {
        None
    }
}

/// A source that has these rules.
pub fn source(number: u64, rules: &Arc<RuleSet>, settings: Settings) -> Limiter {
    let identity = Identity {
        source: number,
        epoch: START.as_micros(),
        pop: format!("pop-{number}"),
    };
    let mut limiter = Limiter::new(identity, settings);
    limiter.set_rules(Arc::clone(rules));
    limiter
}

/// Room for many keys, and a flush each second.
pub const fn settings() -> Settings {
    Settings {
        keys_max: 100_000,
        flush_interval: Micros::from_secs(1),
        hash_seeds: SEEDS,
    }
}

/// Records in memory, the first at position 1.
#[derive(Clone, Default)]
pub struct Log(pub Vec<Vec<u8>>);

impl Journal for Log {
    fn append(&mut self, record: &[u8]) -> u64 {
        self.0.push(record.to_vec());
        self.0.len() as u64
    }
}

/// A ledger and its log.
pub struct Region {
    pub ledger: Ledger,
    pub log: Log,
}

impl Region {
    /// One with these rules in force since the start.
    pub fn new(rules: &Arc<RuleSet>, seeds: [u64; 4]) -> Self {
        let mut region = Self {
            ledger: Ledger::new(seeds),
            log: Log::default(),
        };
        region
            .ledger
            .set_rules(Arc::clone(rules), START, &mut region.log);
        region
    }

    /// Takes in a message.
    pub fn sync(&mut self, outgoing: &Outgoing, now: Timestamp) -> SyncReply {
        let request = SyncRequest::decode(outgoing.body.as_slice()).unwrap();
        self.ledger.sync(request, now, &mut self.log).unwrap()
    }

    /// Takes in all that a source has to say, and answers it.
    pub fn serve(&mut self, source: &mut Limiter, now: Timestamp) {
        while let Some(outgoing) = source.poll_send(now) {
            let reply = self.sync(&outgoing, now).encode_to_vec();
            source.handle_reply(outgoing.id, &reply, now).unwrap();
        }
    }

    /// Hits in the books.
    pub fn hits(&self) -> u64 {
        self.ledger
            .hits_by_rule()
            .iter()
            .map(|(_, hits)| hits)
            .sum()
    }

    /// All partitions, written down.
    pub fn snapshot(&self) -> Vec<(u64, Vec<Vec<u8>>)> {
        let partition = |partition| {
            let mut chunks = Vec::new();
            let contains = self
                .ledger
                .snapshot(partition, &mut |chunk| chunks.push(chunk.to_vec()));
            (contains, chunks)
        };
        (0..PARTITIONS).map(partition).collect()
    }

    /// Dies, and comes back from a snapshot and the first `kept` records.
    pub fn restart(&mut self, snapshot: &[(u64, Vec<Vec<u8>>)], kept: usize) {
        self.log.0.truncate(kept);
        self.ledger = Ledger::new(SEEDS);
        for (partition, (contains, chunks)) in (0..).zip(snapshot) {
            for chunk in chunks {
                self.ledger.restore(partition, *contains, chunk).unwrap();
            }
        }
        for (position, record) in (1..).zip(&self.log.0) {
            self.ledger.replay(position, record).unwrap();
        }
    }
}
