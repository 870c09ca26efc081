//! A source in the test itself that holds leases: a Limiter and its region, with
//! no network between them, and as many keys as one likes.

use std::net::IpAddr;
use std::sync::Arc;

use limiter::decision::Verdict;
use limiter::edge::{Identity, Limiter, Settings};
use limiter::key::{CounterKey, HashSeed};
use limiter::ledger::{Journal, Ledger};
use limiter::request::{Query, Request};
use limiter::rule::Rule;
use limiter::ruleset::RuleSet;
use limiter::time::{Micros, Timestamp};
use limiter::wire::SyncRequest;
use prost::Message;

/// The header that the keys come in.
pub const HEADER: &str = "x-api-key";

/// A request that carries one header.
#[derive(Debug, Clone, Copy)]
pub struct Keyed<'a>(pub &'a str);

impl Request for Keyed<'_> {
    fn method(&self) -> &[u8] {
        b"GET"
    }
    fn host(&self) -> &[u8] {
        b"api.example.com"
    }
    fn path(&self) -> &[u8] {
        b"/v1/things?id=7"
    }
    fn header(&self, name: &str) -> Option<&[u8]> {
        (name == HEADER).then_some(self.0.as_bytes())
    }
    fn address(&self) -> Option<IpAddr> {
        None
    }
}

/// A source whose every key is leased.
pub struct Warm {
    /// The source.
    pub limiter: Limiter,
    /// Its keys, as header values.
    pub keys: Vec<String>,
    /// The counters that these keys name: one a rule, key by key.
    pub counters: Vec<CounterKey>,
    /// The present.
    pub now: Timestamp,
    ledger: Ledger,
}

/// A log that nobody reads.
struct NoLog;

impl Journal for NoLog {
    fn append(&mut self, _record: &[u8]) -> u64 {
        0
    }
}

impl Warm {
    /// A source with `count` keys, each with tokens for `hits` requests in hand,
    /// under `rules` that are keyed by [`HEADER`].
    ///
    /// # Panics
    /// If the rules are not valid or leave a key without a lease.
    #[must_use]
    pub fn new(rules: Vec<Rule>, count: usize, hits: u64) -> Self {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let set = RuleSet::new("bench", 1, Vec::new(), HashSeed::default(), rules);
        let set = Arc::new(set.expect("valid rules"));
        let mut ledger = Ledger::new([5, 6, 7, 8]);
        ledger.set_rules(Arc::clone(&set), now, &mut NoLog);
        let mut limiter = Limiter::new(identity(), settings(count * set.len()));
        limiter.set_rules(Arc::clone(&set));
        let keys: Vec<String> = (0..count).map(|n| format!("customer-{n:07}")).collect();
        let mut counters = Vec::with_capacity(count * set.len());
        for key in &keys {
            let query = set.resolve(&Keyed(key));
            counters.extend(query.hits.iter().map(|hit| hit.key));
            demand(&mut limiter, query, hits, now);
        }
        // All of them have to be asked for. No time passes: what is not used is
        // given back with the second claim.
        exchange(&mut limiter, &mut ledger, now);
        Self {
            limiter,
            keys,
            counters,
            now,
            ledger,
        }
    }

    /// A second later: carries the flush that is due to the region and back.
    pub fn flush(&mut self) {
        self.now = self.now.after(Micros::from_secs(1));
        exchange(&mut self.limiter, &mut self.ledger, self.now);
    }

    /// What a request asks, to be aimed at a key.
    #[must_use]
    pub fn query(&self) -> Query {
        self.limiter.rules().resolve(&Keyed(""))
    }

    /// Has a query ask for the key at this place, as if it had just been resolved.
    pub fn aim(&self, query: &mut Query, place: usize) {
        let rules = query.hits.len();
        let counters = self.counters.iter().skip(place * rules);
        for (hit, counter) in query.hits.iter_mut().zip(counters) {
            hit.key = *counter;
        }
    }
}

/// One request that costs as much as all that are to come.
fn demand(limiter: &mut Limiter, mut dear: Query, hits: u64, now: Timestamp) {
    for hit in &mut dear.hits {
        hit.cost = hits;
    }
    let verdict = limiter.decide(&dear, now);
    assert!(!matches!(verdict, Verdict::Deny(_)), "{verdict:?}");
}

/// Carries whatever is due to the region and back.
fn exchange(limiter: &mut Limiter, ledger: &mut Ledger, now: Timestamp) {
    while let Some(outgoing) = limiter.poll_send(now) {
        let request = SyncRequest::decode(outgoing.body.as_slice()).expect("a message");
        let reply = ledger
            .sync(request, now, &mut NoLog)
            .expect("a good message");
        limiter
            .handle_reply(outgoing.id, &reply.encode_to_vec(), now)
            .expect("a good reply");
    }
}

fn identity() -> Identity {
    Identity {
        source: 1,
        epoch: 1,
        pop: "bench".into(),
    }
}

fn settings(keys: usize) -> Settings {
    Settings {
        keys_max: keys * 2,
        flush_interval: Micros::from_secs(1),
        hash_seeds: [1, 2, 3, 4],
    }
}
