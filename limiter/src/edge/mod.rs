//! The edge half: one source's state machine.

use alloc::{string::String, sync::Arc, vec::Vec};

use crate::{
    decision::Verdict,
    request::Query,
    ruleset::RuleSet,
    time::{Micros, Timestamp},
};

/// One source: decides from memory, reports what it counted, asks when it has
/// run out. Every `now` is the host's own wall clock; what the region's clock
/// says is learned from its replies.
pub struct Limiter {
    rules: Arc<RuleSet>,
}

/// Who a source is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Random, never used again.
    pub source: u64,
    /// Which of its lives: greater in every later one.
    pub epoch: u64,
    /// The place, for people to read.
    pub pop: String,
}

/// What bounds a source.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most keys held.
    pub keys_max: usize,
    /// Time between two flushes.
    pub flush_interval: Micros,
    /// Seeds of the key table's hash: random, and secret.
    pub hash_seeds: [u64; 4],
}

/// Bytes to be carried to the region: the body of one `POST /v1/sync`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// To name it by when its answer comes or does not.
    pub id: u64,
    /// A `SyncRequest`.
    pub body: Vec<u8>,
}

/// Why a reply was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// It is not a `SyncReply`.
    #[error("the reply is not a sync reply")]
    Malformed,
    /// The rules in it are refused; those in force stay.
    #[error("the rules in the reply are refused: {0}")]
    Rules(String),
}

/// What a rule has decided since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleStats {
    /// Requests admitted.
    pub allowed: u64,
    /// Requests denied.
    pub denied: u64,
    /// Requests a watching rule would have denied.
    pub shadow_denied: u64,
    /// Hits admitted because nobody could be asked.
    pub leaked: u64,
}

/// What a source holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Keys held now.
    pub keys: u64,
    /// Requests that waited for the region, since the start.
    pub held: u64,
    /// Messages sent because a key had run out, since the start.
    pub asks: u64,
    /// Deltas sent, since the start.
    pub deltas: u64,
    /// Hits that will never reach the region, since the start.
    pub lost_hits: u64,
    /// Time since the region last answered; none before its first answer.
    pub last_reply_ago: Option<Micros>,
    /// Whether the region is taken to be away.
    pub away: bool,
}

impl Limiter {
    /// A source that knows no rules yet and admits everything until it does.
    pub fn new(identity: Identity, settings: Settings) -> Self {
        let _ = (identity, settings);
        Self {
            rules: Arc::default(),
        }
    }

    /// The rules in force. `rules().resolve(&request)` makes a [`Query`].
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Puts rules in force that did not come with a reply.
    pub fn set_rules(&mut self, rules: Arc<RuleSet>) {
        self.rules = rules;
    }

    /// Decides a request that has just arrived.
    pub fn decide(&mut self, query: &Query, now: Timestamp) -> Verdict {
        let _ = (query, now);
        Verdict::Pass
    }

    /// Decides a request that was held, after a reply has come, or for the last
    /// time (`give_up`), when it is answered without waiting any longer.
    pub fn decide_held(&mut self, query: &Query, now: Timestamp, give_up: bool) -> Verdict {
        let _ = (query, now, give_up);
        Verdict::Pass
    }

    /// The next message to send, if one is due. Call it after every decision
    /// and reply and at [`Self::poll_timeout`], until it returns none.
    pub fn poll_send(&mut self, now: Timestamp) -> Option<Outgoing> {
        let _ = now;
        None
    }

    /// Makes all that is dirty due at once: the last flush of a life.
    pub fn flush_now(&mut self) {}

    /// When [`Self::poll_send`] wants to be called at the latest.
    pub fn poll_timeout(&self) -> Timestamp {
        Timestamp::default()
    }

    /// Takes in the region's answer to a message. Held requests may be decided
    /// anew afterwards.
    pub fn handle_reply(&mut self, id: u64, body: &[u8], now: Timestamp) -> Result<(), ReplyError> {
        let _ = (id, body, now);
        Ok(())
    }

    /// Takes in that a message was not answered (refused, an error, a timeout of
    /// the transport): what was in it is sent again.
    pub fn handle_no_answer(&mut self, id: u64, now: Timestamp) {
        let _ = (id, now);
    }

    /// What each rule has decided since the last call, by its place in the set.
    pub fn take_rule_stats(&mut self) -> Vec<RuleStats> {
        Vec::new()
    }

    /// What it holds and has done.
    pub fn stats(&self, now: Timestamp) -> SourceStats {
        let _ = now;
        SourceStats::default()
    }
}
