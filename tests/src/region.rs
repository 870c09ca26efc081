//! A region in the test itself: the real Ledger behind `/v1/sync`, without a disk,
//! that can be told to misbehave.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{net::SocketAddr, thread};

use limiter::address::Cidr;
use limiter::key::HashSeed;
use limiter::ledger::{Journal, Ledger};
use limiter::rule::Rule;
use limiter::ruleset::RuleSet;
use limiter::time::Timestamp;
use limiter::wire::SyncRequest;
use prost::Message;

use crate::upstream::{Request, Upstream, response};

/// What a region does with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    /// Answers as it should.
    Good,
    /// Answers this instead: status and body.
    Instead(u16, Vec<u8>),
    /// Answers as it should, this much later.
    Late(Duration),
    /// Says how much there will be, sends a part of it and then nothing.
    Stuck,
    /// Closes the connection.
    Hangup,
}

/// A region. It stops listening when dropped.
pub struct Region {
    upstream: Upstream,
    state: Arc<Mutex<State>>,
}

struct State {
    ledger: Ledger,
    manner: Manner,
    revision: u64,
    trusted: Vec<Cidr>,
    calls: Vec<(Request, SyncRequest)>,
}

/// A log that nobody reads.
struct NoLog;

impl Journal for NoLog {
    fn append(&mut self, _record: &[u8]) -> u64 {
        0
    }
}

impl Region {
    /// A region with these rules that trusts no proxy.
    #[must_use]
    pub fn start(rules: Vec<Rule>) -> Self {
        Self::trusting(&[], rules)
    }

    /// A region with these rules whose POPs trust these proxies.
    ///
    /// # Panics
    /// If a block of proxies is none.
    #[must_use]
    pub fn trusting(proxies: &[&str], rules: Vec<Rule>) -> Self {
        let trusted = proxies
            .iter()
            .map(|text| text.parse().expect("a block of addresses"));
        let state = Arc::new(Mutex::new(State {
            ledger: Ledger::new([1, 2, 3, 4]),
            manner: Manner::Good,
            revision: 0,
            trusted: trusted.collect(),
            calls: Vec::new(),
        }));
        let answering = Arc::clone(&state);
        let region = Self {
            upstream: Upstream::answering(move |call| answer(&answering, call)),
            state,
        };
        region.set_rules(rules);
        region
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.upstream.address()
    }

    /// Puts other rules in force.
    ///
    /// # Panics
    /// If they are not valid.
    pub fn set_rules(&self, rules: Vec<Rule>) {
        let mut state = lock(&self.state);
        state.revision += 1;
        let set = RuleSet::new(
            "test",
            state.revision,
            state.trusted.clone(),
            HashSeed::default(),
            rules,
        );
        state
            .ledger
            .set_rules(Arc::new(set.expect("valid rules")), now(), &mut NoLog);
    }

    /// Behaves otherwise from now on.
    pub fn set_manner(&self, manner: Manner) {
        lock(&self.state).manner = manner;
    }

    /// Every call so far: as HTTP, and what it said.
    #[must_use]
    pub fn calls(&self) -> Vec<(Request, SyncRequest)> {
        lock(&self.state).calls.clone()
    }

    /// How many calls there were.
    #[must_use]
    pub fn call_count(&self) -> usize {
        lock(&self.state).calls.len()
    }

    /// How many sources have called and run these rules.
    #[must_use]
    pub fn sources_up_to_date(&self) -> usize {
        let state = lock(&self.state);
        let current = state
            .calls
            .iter()
            .filter(|(_, sync)| sync.rules_revision == state.revision);
        let mut sources: Vec<u64> = current.map(|(_, sync)| sync.source).collect();
        sources.sort_unstable();
        sources.dedup();
        sources.len()
    }

    /// Hits in the books so far, over all rules.
    #[must_use]
    pub fn hits(&self) -> u64 {
        lock(&self.state)
            .ledger
            .hits_by_rule()
            .iter()
            .map(|(_, hits)| hits)
            .sum()
    }

    /// Of those, hits that were given back.
    #[must_use]
    pub fn returned(&self) -> u64 {
        lock(&self.state)
            .ledger
            .returned_by_rule()
            .iter()
            .map(|(_, hits)| hits)
            .sum()
    }

    /// Of the hits in the books, those that sources said had leaked.
    #[must_use]
    pub fn leaked(&self) -> u64 {
        lock(&self.state)
            .ledger
            .leaked_by_rule()
            .iter()
            .map(|(_, hits)| hits)
            .sum()
    }
}

fn answer(state: &Mutex<State>, call: &Request) -> Vec<u8> {
    let Ok(sync) = SyncRequest::decode(call.body.as_slice()) else {
        return response(400, &[], b"not a SyncRequest");
    };
    let manner = {
        let mut state = lock(state);
        state.calls.push((call.clone(), sync.clone()));
        state.manner.clone()
    };
    match manner {
        Manner::Good => good(state, sync),
        Manner::Instead(status, body) => response(status, &[], &body),
        Manner::Late(delay) => {
            thread::sleep(delay);
            good(state, sync)
        }
        Manner::Stuck => b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\npart of it".to_vec(),
        Manner::Hangup => Vec::new(),
    }
}

fn good(state: &Mutex<State>, sync: SyncRequest) -> Vec<u8> {
    match lock(state).ledger.sync(sync, now(), &mut NoLog) {
        Ok(reply) => response(
            200,
            &[("content-type", "application/x-protobuf")],
            &reply.encode_to_vec(),
        ),
        Err(error) => response(400, &[], error.to_string().as_bytes()),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
