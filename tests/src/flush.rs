//! What a source's flushes look like on the wire, for those who load an
//! aggregator with them.

use limiter::key::{CounterKey, HashSeed, PARTITIONS};
use limiter::ruleset::RuleSet;
use limiter::wire::{Batch, ClaimGroup, CountGroup, SyncReply, SyncRequest};
use prost::Message;

use crate::http::{Connection, request};
use crate::rules::per_header;

/// A rule file with the one rule that all hits are of.
pub const RULES: &str = "\
version: 1
domain: bench
rules:
  - { name: a, key: [header.x-api-key], limit: 1000000000, window: 1d }
";

/// One source: counts up its messages and, partition by partition, its batches.
#[derive(Debug)]
pub struct Flusher {
    source: u64,
    message: u64,
    sequences: Vec<u64>,
    /// The rules it runs, once told.
    pub revision: u64,
}

/// What a message carries beside its hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// Nothing.
    None,
    /// A claim on each of its keys, as sources do: a lease comes back for each.
    All,
}

impl Flusher {
    /// A source that has said nothing yet.
    #[must_use]
    pub fn new(source: u64) -> Self {
        Self {
            source,
            message: 0,
            sequences: vec![0; PARTITIONS as usize],
            revision: 0,
        }
    }

    /// A message with one hit for each of these keys, which have to be sorted.
    #[must_use]
    pub fn message(&mut self, rule: u64, keys: &[CounterKey], claims: Claims) -> SyncRequest {
        self.message += 1;
        let same = |one: &CounterKey, other: &CounterKey| one.partition() == other.partition();
        let batches = keys
            .chunk_by(same)
            .filter_map(|keys| self.batch(rule, keys))
            .collect();
        let claims = match claims {
            Claims::None => Vec::new(),
            Claims::All => vec![claim(rule, keys)],
        };
        SyncRequest {
            source: self.source,
            message: self.message,
            rules_revision: self.revision,
            batches,
            claims,
            ..SyncRequest::default()
        }
    }

    fn batch(&mut self, rule: u64, keys: &[CounterKey]) -> Option<Batch> {
        let partition = keys.first()?.partition();
        let sequence = self.sequences.get_mut(partition as usize)?;
        *sequence += 1;
        Some(Batch {
            partition,
            epoch: 1,
            sequence: *sequence,
            groups: vec![CountGroup {
                rule,
                window: 0,
                keys: column(keys).into(),
                hits: vec![1; keys.len()],
                ..CountGroup::default()
            }],
        })
    }

    /// Sends a message and takes its answer.
    ///
    /// # Panics
    /// If it is not counted.
    pub fn send(&mut self, to: &mut Connection, message: &SyncRequest) -> SyncReply {
        let headers = [("content-type", "application/x-protobuf")];
        let call = request("POST", "/v1/sync", &headers, &message.encode_to_vec());
        let answer = to.send(&call).expect("the aggregator answers");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let reply = SyncReply::decode(answer.body.as_slice()).expect("a reply");
        let counted = |status| status == limiter::wire::ack::Status::Counted;
        assert!(reply.acks.iter().all(|ack| counted(ack.status())));
        self.revision = reply.rules_revision;
        reply
    }
}

/// The first keys there are: spread over all partitions as hashes are, sorted.
#[must_use]
pub fn keys(count: usize) -> Vec<CounterKey> {
    let mut keys: Vec<CounterKey> = (0..count as u64).map(key).collect();
    keys.sort_unstable();
    keys
}

/// The key at a place: two rounds of a mixer that leaves no two alike.
#[must_use]
pub const fn key(place: u64) -> CounterKey {
    CounterKey((mixed(place) as u128) << 64 | mixed(!place) as u128)
}

/// splitmix64.
const fn mixed(place: u64) -> u64 {
    let mut z = place.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The rule of [`RULES`], as the wire names it.
///
/// # Panics
/// Never.
#[must_use]
pub fn rule_id() -> u64 {
    let rules = vec![per_header("a", "x-api-key", 1, 60)];
    let set = RuleSet::new("bench", 1, Vec::new(), HashSeed::default(), rules);
    set.expect("valid rules").id(0).expect("a rule").0
}

fn claim(rule: u64, keys: &[CounterKey]) -> ClaimGroup {
    ClaimGroup {
        rule,
        keys: column(keys).into(),
        offered: vec![1; keys.len()],
        ..ClaimGroup::default()
    }
}

fn column(keys: &[CounterKey]) -> Vec<u8> {
    keys.iter().flat_map(|key| key.to_bytes()).collect()
}
