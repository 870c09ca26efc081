//! What a source holds and has done, for metrics.

use crate::time::Micros;

/// What a rule has decided since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleStats {
    /// Requests admitted.
    pub allowed: u64,
    /// Requests denied.
    pub denied: u64,
    /// Requests that a watching rule would have denied.
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
    /// Keys asked for because they had run out, since the start.
    pub asks: u64,
    /// Deltas sent for the first time, since the start.
    pub deltas: u64,
    /// Hits admitted without an entry because the table was full, since the
    /// start: they reach no books.
    pub untracked: u64,
    /// Time since the region last answered; none before its first answer.
    pub last_reply_ago: Option<Micros>,
    /// Whether the region is taken to be away.
    pub away: bool,
}
