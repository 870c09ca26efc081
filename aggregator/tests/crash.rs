//! SIGKILL, again and again, under load: what was acknowledged is counted, and
//! counted once.
//!
//! Several sources flush without a pause and send each message again until it
//! is acknowledged, while the service is killed at random moments and started
//! again on the same data. At the end every message has been acknowledged, so
//! the books must hold exactly what was sent. The seed is printed first;
//! `WEIR_CRASH_SEED` repeats it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking, and shares its helpers"
)]

mod common;

use std::{collections::HashMap, net::SocketAddr, sync::Arc, thread};

use common::{
    client::{check, metric},
    killed::Region,
    messages::{RULES, group, key, rules},
    random::Random,
};
use limiter::{
    ruleset::RuleSet,
    wire::{Batch, SyncReply, SyncRequest, ack::Status},
};
use prost::Message;

const ROUNDS: u64 = 24;
const SOURCES: u64 = 4;
const KEYS: u64 = 12;
const RULE_NAMES: [&str; 2] = ["wide", "other"];

/// What has been acknowledged, by rule and key.
type Books = HashMap<Entry, u64>;

/// A rule's name and a key.
type Entry = (&'static str, String);

#[test]
fn every_acknowledged_flush_is_counted_exactly_once_however_often_the_service_is_killed() {
    let seed = std::env::var("WEIR_CRASH_SEED").map_or(20_261, |seed| seed.parse().unwrap());
    println!("WEIR_CRASH_SEED={seed}");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rules.yaml"), RULES).unwrap();
    let region = Arc::new(Region::default());
    let sources: Vec<_> = (0..SOURCES)
        .map(|source| {
            let region = Arc::clone(&region);
            thread::spawn(move || Source::new(seed, source).run(&region))
        })
        .collect();
    region.kill_again_and_again(ROUNDS, dir.path(), &mut Random::new(seed));
    let (mut child, address) = region.start_and_close(dir.path());
    let mut books = Books::new();
    for source in sources {
        for (entry, hits) in source.join().unwrap() {
            *books.entry(entry).or_default() += hits;
        }
    }
    assert_books(address, &books);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn assert_books(address: SocketAddr, books: &Books) {
    let sent: u64 = books.values().sum();
    println!("{sent} hits were acknowledged");
    assert!(sent > 10_000, "too little happened to tell anything");
    for rule in RULE_NAMES {
        let sent: u64 = books
            .iter()
            .filter(|(entry, _)| entry.0 == rule)
            .map(|(_, hits)| hits)
            .sum();
        let label = format!("rule=\"{rule}\"");
        assert_eq!(metric(address, "weir_hits_total", &label), sent, "{rule}");
    }
    for ((rule, key), hits) in books {
        let answer = check(address, &serde_json::json!({"rule": rule, "key": key})).json();
        assert_eq!(
            answer["remaining"],
            1_000_000_000 - hits - 1,
            "{rule} {key}"
        );
    }
}

/// One source: what it will send next in each partition, and what was taken.
struct Source {
    number: u64,
    random: Random,
    rules: Arc<RuleSet>,
    message: u64,
    sequences: HashMap<u32, u64>,
    acked: Books,
}

impl Source {
    fn new(seed: u64, number: u64) -> Self {
        Self {
            number,
            random: Random::new(seed ^ (number + 1)),
            rules: rules(),
            message: 0,
            sequences: HashMap::new(),
            acked: Books::new(),
        }
    }

    fn run(mut self, region: &Region) -> Books {
        while !region.is_closing() {
            let (message, told) = self.next_message();
            let reply = send_until_answered(region, &message);
            for (batch, ack) in message.batches.iter().zip(&reply.acks) {
                let taken = matches!(ack.status(), Status::Counted | Status::Duplicate);
                assert!(taken, "source {}: {batch:?} {ack:?}", self.number);
            }
            assert_eq!(reply.acks.len(), message.batches.len());
            if self.random.below(8) == 0 {
                let again = send_until_answered(region, &message);
                let known = |ack: &limiter::wire::Ack| ack.status() == Status::Duplicate;
                assert!(again.acks.iter().all(known), "{again:?}");
            }
            for (entry, hits) in told {
                *self.acked.entry(entry).or_default() += hits;
            }
        }
        self.acked
    }

    /// A message with a few counts, each partition's in a batch of its own.
    fn next_message(&mut self) -> (SyncRequest, Vec<(Entry, u64)>) {
        self.message += 1;
        let mut batches: HashMap<u32, Batch> = HashMap::new();
        let mut told = Vec::new();
        for _ in 0..=self.random.below(5) {
            let rule = RULE_NAMES[usize::from(self.random.below(2) == 0)];
            let value = format!("k{}", self.random.below(KEYS));
            let hits = 1 + self.random.below(9);
            let key = key(&self.rules, rule, &value);
            let sequences = &mut self.sequences;
            let batch = batches.entry(key.partition()).or_insert_with(|| {
                let sequence = sequences.entry(key.partition()).or_default();
                *sequence += 1;
                Batch {
                    partition: key.partition(),
                    epoch: 1,
                    sequence: *sequence,
                    ..Batch::default()
                }
            });
            batch.groups.push(group(&self.rules, rule, key, hits));
            told.push(((rule, value), hits));
        }
        let message = SyncRequest {
            source: 100 + self.number,
            message: self.message,
            rules_revision: 1,
            batches: batches.into_values().collect(),
            ..SyncRequest::default()
        };
        (message, told)
    }
}

fn send_until_answered(region: &Region, message: &SyncRequest) -> SyncReply {
    let bytes = message.encode_to_vec();
    let response = region.send_until_answered("/v1/sync", &bytes);
    SyncReply::decode(response.body.as_slice()).unwrap()
}
