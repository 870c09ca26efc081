//! A region in the test itself: the real Ledger, whose time is the test's.

use std::sync::Arc;

use limiter::ledger::{Journal, Ledger};
use limiter::ruleset::RuleSet;
use limiter::time::Timestamp;
use limiter::wire::SyncRequest;
use prost::Message;

/// The books of a region.
pub struct Books(Ledger);

/// A log that nobody reads.
struct NoLog;

impl Journal for NoLog {
    fn append(&mut self, _record: &[u8]) -> u64 {
        0
    }
}

impl Books {
    /// Empty books with these rules in force.
    #[must_use]
    pub fn with(rules: RuleSet, now: u64) -> Self {
        let mut ledger = Ledger::new([1, 2, 3, 4]);
        ledger.set_rules(Arc::new(rules), Timestamp::from_micros(now), &mut NoLog);
        Self(ledger)
    }

    /// The answer to a message; none to one that is none.
    #[must_use]
    pub fn answer(&mut self, message: &[u8], now: u64) -> Option<Vec<u8>> {
        let message = SyncRequest::decode(message).ok()?;
        let reply = self
            .0
            .sync(message, Timestamp::from_micros(now), &mut NoLog);
        Some(reply.ok()?.encode_to_vec())
    }

    /// Hits in the books, over all rules.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.0.hits_by_rule().iter().map(|(_, hits)| hits).sum()
    }
}
