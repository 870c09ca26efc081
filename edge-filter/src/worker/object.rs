//! The books of one Durable Object: the same ledger as the aggregator's. JavaScript
//! keeps what it puts on record, in SQLite, and gives it back at the next start.

use std::cell::RefCell;
use std::sync::Arc;

use limiter::ledger::{Journal, Ledger};
use limiter::time::Timestamp;
use limiter::wire::{self, SyncRequest};
use prost::Message;

use super::isolate::read;
use super::{abi, above};

pub(super) struct Object {
    pub(super) ledger: Ledger,
    /// The position of the last record.
    position: u64,
    /// The region's clock never goes back.
    latest: Timestamp,
}

thread_local! {
    static OBJECT: RefCell<Option<Object>> = const { RefCell::new(None) };
}

/// Hands records over as they are made, each under the next position.
pub(super) struct Records<'a>(&'a mut u64);

impl Journal for Records<'_> {
    fn append(&mut self, record: &[u8]) -> u64 {
        *self.0 = self.0.saturating_add(1);
        abi::keep(record);
        *self.0
    }
}

pub(super) fn with<T>(act: impl FnOnce(&mut Object) -> Result<T, String>) -> Result<T, String> {
    let busy = || "the object has not been started".to_owned();
    OBJECT.with(|cell| {
        let mut slot = cell.try_borrow_mut().map_err(|_| busy())?;
        act(slot.as_mut().ok_or_else(busy)?)
    })
}

/// Empty books; their clock begins no earlier than `latest`.
pub(super) fn start(seeds: [u64; 4], latest: Timestamp) {
    let object = Object {
        ledger: Ledger::new(seeds),
        position: 0,
        latest,
    };
    OBJECT.with(|cell| {
        if let Ok(mut slot) = cell.try_borrow_mut() {
            *slot = Some(object);
        }
    });
}

/// A chunk of a partition's snapshot.
pub(super) fn restore(partition: u32, contains: u64, chunk: &[u8]) -> Result<(), String> {
    with(|object| {
        object.position = object.position.max(contains);
        let restored = object.ledger.restore(partition, contains, chunk);
        restored.map_err(|error| error.to_string())
    })
}

/// A record that was kept.
pub(super) fn replay(position: u64, record: &[u8]) -> Result<(), String> {
    with(|object| {
        object.position = object.position.max(position);
        let replayed = object.ledger.replay(position, record);
        replayed.map_err(|error| error.to_string())
    })
}

/// Puts rules in force that are newer than those there are; false if they are not.
pub(super) fn enforce(rules: &[u8], now: Timestamp) -> Result<bool, String> {
    let rules = read(rules)?;
    with(|object| {
        if rules.revision <= object.ledger.rules().revision {
            return Ok(false);
        }
        let now = object.now(now);
        let (ledger, mut records) = object.parts();
        ledger.set_rules(Arc::new(rules), now, &mut records);
        Ok(true)
    })
}

/// Counts a source's message, and answers it.
pub(super) fn sync(message: &[u8], now: Timestamp) -> Result<Vec<u8>, String> {
    let request = SyncRequest::decode(message).map_err(|_| "not a SyncRequest".to_owned())?;
    with(|object| {
        above::look(object, &request)?;
        let now = object.now(now);
        let (ledger, mut records) = object.parts();
        let reply = ledger.sync(request, now, &mut records);
        reply
            .map(|reply| reply.encode_to_vec())
            .map_err(|error| error.to_string())
    })
}

/// Forgets what no longer matters in one partition; true if there is more.
pub(super) fn sweep(partition: u32, now: Timestamp) -> bool {
    with(|object| {
        let now = object.now(now);
        Ok(object.ledger.sweep(partition, now))
    })
    .unwrap_or(false)
}

/// Hands over one partition, chunk by chunk. All records up to
/// [`position`] are in it.
pub(super) fn snapshot(partition: u32) {
    let _ = with(|object| {
        object.ledger.snapshot(partition, &mut abi::keep);
        Ok(())
    });
}

/// The position of the last record.
pub(super) fn position() -> u64 {
    with(|object| Ok(object.position)).unwrap_or(0)
}

/// The rules in force, in the wire's form.
pub(super) fn rules() -> Vec<u8> {
    with(|object| Ok(wire::RuleSet::from(&**object.ledger.rules()).encode_to_vec()))
        .unwrap_or_default()
}

/// What the books say, as JSON: for people, and for tests.
pub(super) fn status(now: Timestamp) -> Vec<u8> {
    with(|object| {
        let now = object.now(now);
        let ledger = &object.ledger;
        let sum = |sums: Vec<(limiter::key::RuleId, u64)>| -> u64 {
            sums.iter()
                .fold(0, |sum, (_, hits)| sum.saturating_add(*hits))
        };
        let status = serde_json::json!({
            "revision": ledger.rules().revision,
            "rules": ledger.rules().len(),
            "hits": sum(ledger.hits_by_rule()),
            "leaked": sum(ledger.leaked_by_rule()),
            "returned": sum(ledger.returned_by_rule()),
            "keys": ledger.keys(),
            "sources": ledger.sources(now),
            "upstream": above::status(object, now),
        });
        Ok(status.to_string().into_bytes())
    })
    .unwrap_or_default()
}

impl Object {
    /// The books, and where their records go.
    pub(super) fn parts(&mut self) -> (&mut Ledger, Records<'_>) {
        (&mut self.ledger, Records(&mut self.position))
    }

    /// The region's clock.
    pub(super) fn now(&mut self, now: Timestamp) -> Timestamp {
        self.latest = self.latest.max(now).max(self.ledger.latest());
        self.latest
    }
}
