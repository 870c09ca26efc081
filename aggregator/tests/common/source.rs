//! A source that sends every batch until it is acknowledged, and knows what was.

use std::collections::{HashMap, HashSet};

use limiter::{
    ruleset::RuleSet,
    wire::{Batch, SyncReply, SyncRequest, ack::Status},
};
use prost::Message;
use std::{net::SocketAddr, sync::Arc, thread::JoinHandle};

use super::{
    client::{Response, check},
    cluster::Cluster,
    messages::{group, key, rules},
    random::Random,
};

const KEYS: u64 = 24;
pub const RULE_NAMES: [&str; 2] = ["wide", "other"];

/// What has been acknowledged, by rule and key.
pub type Books = HashMap<Entry, u64>;

/// A rule's name and a key.
type Entry = (&'static str, String);

/// What sources speak to, whoever answers for it.
pub trait Service {
    /// Whether clients are to finish.
    fn is_closing(&self) -> bool;

    /// Sends the same bytes until they are answered.
    fn send_until_answered(&self, path: &str, body: &[u8]) -> Response;
}

/// What it will send next in each partition, and what was taken.
pub struct Source {
    number: u64,
    random: Random,
    rules: Arc<RuleSet>,
    message: u64,
    sequences: HashMap<u32, u64>,
    acked: Books,
}

impl Source {
    pub fn new(seed: u64, number: u64) -> Self {
        Self {
            number,
            random: Random::new(seed ^ (number + 1)),
            rules: rules(),
            message: 0,
            sequences: HashMap::new(),
            acked: Books::new(),
        }
    }

    /// Flushes until the service is closing.
    pub fn run(mut self, service: &impl Service) -> Books {
        while !service.is_closing() {
            let (message, told) = self.next_message();
            self.send(service, &message);
            for (entry, hits) in told {
                *self.acked.entry(entry).or_default() += hits;
            }
        }
        self.acked
    }

    /// Sends a message until all of its batches are acknowledged.
    fn send(&mut self, service: &impl Service, message: &SyncRequest) {
        let bytes = message.encode_to_vec();
        let again = self.random.below(8) == 0;
        let mut open: HashSet<u32> = message
            .batches
            .iter()
            .map(|batch| batch.partition)
            .collect();
        let mut first = true;
        while !open.is_empty() || (first && again) {
            first = !open.is_empty();
            let response = service.send_until_answered("/v1/sync", &bytes);
            let reply = SyncReply::decode(response.body.as_slice()).unwrap();
            for ack in &reply.acks {
                let taken = matches!(ack.status(), Status::Counted | Status::Duplicate);
                assert!(taken, "source {}: {message:?} {ack:?}", self.number);
                let was_open = open.remove(&ack.partition);
                assert!(was_open || ack.status() == Status::Duplicate, "{ack:?}");
            }
        }
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

/// Runs so many sources while something happens to the cluster. Returns what was
/// acknowledged.
pub fn under_load(cluster: &Arc<Cluster>, seed: u64, sources: u64, act: impl FnOnce()) -> Books {
    let threads: Vec<_> = (0..sources)
        .map(|source| {
            let cluster = Arc::clone(cluster);
            std::thread::spawn(move || Source::new(seed, source).run(&*cluster))
        })
        .collect();
    act();
    cluster.close();
    join(threads)
}

/// Waits for sources to finish; what was acknowledged to all of them.
pub fn join(threads: Vec<JoinHandle<Books>>) -> Books {
    let mut books = Books::new();
    for thread in threads {
        for (entry, hits) in thread.join().unwrap() {
            *books.entry(entry).or_default() += hits;
        }
    }
    books
}

/// What was acknowledged is what the members' books hold.
pub fn assert_books(cluster: &Cluster, books: &Books) {
    let hits = |label: &str| cluster.sum("weir_hits_total", label);
    assert_held(&cluster.addresses(), books, hits);
}

/// What was acknowledged is what those at `addresses` hold, and count as `hits` by a
/// rule's label: no less, and no more.
pub fn assert_held(addresses: &[SocketAddr], books: &Books, hits: impl Fn(&str) -> u64) {
    let sent: u64 = books.values().sum();
    println!("{sent} hits were acknowledged");
    for rule in RULE_NAMES {
        let sent: u64 = books
            .iter()
            .filter(|(entry, _)| entry.0 == rule)
            .map(|(_, hits)| hits)
            .sum();
        let label = format!("rule=\"{rule}\"");
        assert_eq!(hits(&label), sent, "{rule}");
    }
    for (n, ((rule, key), hits)) in books.iter().enumerate() {
        let member = addresses[n % addresses.len()];
        let answer = check(member, &serde_json::json!({"rule": rule, "key": key})).json();
        assert_eq!(
            answer["remaining"],
            1_000_000_000 - hits - 1,
            "{rule} {key}"
        );
    }
}
