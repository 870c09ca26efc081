//! The region half: the authoritative counts, and what is lent on them.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    decision::Verdict,
    request::Query,
    ruleset::RuleSet,
    time::Timestamp,
    wire::{SyncReply, SyncRequest},
};

/// One region's books. Every `now` is the region's clock.
///
/// Each change is handed to a [`Journal`] as a record as it is made; a reply
/// must not leave before every record handed over until then is durable.
/// Replaying the records into an empty ledger brings back the same books. What
/// is lent is not recorded: it expires by itself.
pub struct Ledger {
    rules: Arc<RuleSet>,
}

/// Where a ledger's records go.
pub trait Journal {
    /// Takes a record and returns its position, which grows with every record.
    fn append(&mut self, record: &[u8]) -> u64;
}

/// Why a message changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// Columns of a group differ in length, say.
    #[error("batch {batch}, group {group}: {what}")]
    Malformed {
        /// Its place in the message.
        batch: usize,
        /// Its place in the batch.
        group: usize,
        /// What is wrong.
        what: &'static str,
    },
}

/// Why a record cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record at {position} is not one of ours: {what}")]
pub struct ReplayError {
    /// Where it stands.
    pub position: u64,
    /// What is wrong.
    pub what: &'static str,
}

impl Ledger {
    /// Empty books.
    pub fn new() -> Self {
        Self {
            rules: Arc::default(),
        }
    }

    /// The rules in force.
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Puts rules in force, and on record. Counts whose rule keeps its name,
    /// key, window and algorithm go on.
    pub fn set_rules(&mut self, rules: Arc<RuleSet>, now: Timestamp, journal: &mut dyn Journal) {
        let _ = (now, journal);
        self.rules = rules;
    }

    /// Counts a source's message and answers it.
    pub fn sync(
        &mut self,
        request: &SyncRequest,
        now: Timestamp,
        journal: &mut dyn Journal,
    ) -> Result<SyncReply, SyncError> {
        let _ = (request, now, journal);
        Ok(SyncReply::default())
    }

    /// Decides one request here, exactly, and counts it if it is allowed.
    /// Never holds.
    pub fn check(&mut self, query: &Query, now: Timestamp, journal: &mut dyn Journal) -> Verdict {
        let _ = (query, now, journal);
        Verdict::Pass
    }

    /// Forgets what no longer matters in one partition: spent counts, expired
    /// loans, sources long silent. To be called for each partition in turn.
    pub fn sweep(&mut self, partition: u32, now: Timestamp) {
        let _ = (partition, now);
    }

    /// Writes one partition, as chunks that [`Self::restore`] takes one by one.
    /// Returns the position of the last record it contains.
    pub fn snapshot(&self, partition: u32, chunk: &mut dyn FnMut(&[u8])) -> u64 {
        let _ = (partition, chunk);
        0
    }

    /// Reads back one chunk of a snapshot.
    pub fn restore(
        &mut self,
        partition: u32,
        contains: u64,
        chunk: &[u8],
    ) -> Result<(), ReplayError> {
        let _ = (partition, contains, chunk);
        Ok(())
    }

    /// Applies a record from the log, unless the snapshot of its partition
    /// contains it.
    pub fn replay(&mut self, position: u64, record: &[u8]) -> Result<(), ReplayError> {
        let _ = (position, record);
        Ok(())
    }

    /// Hits counted since the beginning, by rule: the books, which no window
    /// ends.
    pub fn hits_by_rule(&self) -> Vec<(crate::key::RuleId, u64)> {
        Vec::new()
    }

    /// Counts held.
    pub fn keys(&self) -> usize {
        0
    }

    /// Sources heard of within their lease.
    pub fn sources(&self, now: Timestamp) -> usize {
        let _ = now;
        0
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}
