//! The answer to a request, and who gave it.

use crate::time::{Micros, Timestamp};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No rule applies.
    Pass,
    /// It goes through. The decision is that of the rule with the least left.
    Allow(Decision),
    /// It is turned away. The decision is that of the rule that frees last.
    Deny(Decision),
    /// The region is being asked: ask again when its reply has come, or at
    /// `until` for an answer that no longer waits.
    Hold {
        /// When the patience of the rule ends, by the caller's clock.
        until: Timestamp,
    },
}

/// What one rule says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The rule's place in the set the request was asked of.
    pub rule: usize,
    /// The rule's limit.
    pub limit: u64,
    /// The largest cost that would be allowed next, as far as is known here.
    pub remaining: u64,
    /// Time until the whole limit is there again.
    pub reset_after: Micros,
    /// For a denial: when it is of use to try again; none if it never is.
    pub retry_after: Option<Micros>,
    /// Who decided.
    pub tier: Tier,
    /// Whether a rule that only watches would have denied it.
    pub shadowed: bool,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// The source alone, for a rule whose scope it is.
    Local,
    /// The source, from what the region has lent it.
    Lease,
    /// The source, ahead of the region's word, for a key that is not crowded.
    Credit,
    /// The source, ahead of the region's word, within the tolerance.
    Debt,
    /// The source, with nobody to ask.
    Fallback,
    /// The region.
    Region,
}

impl Tier {
    /// Its name, as in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Lease => "lease",
            Self::Credit => "credit",
            Self::Debt => "debt",
            Self::Fallback => "fallback",
            Self::Region => "region",
        }
    }
}

impl Decision {
    /// Whether this denial is the one to name rather than another: it frees later.
    pub(crate) fn frees_after(&self, other: &Self) -> bool {
        match (self.retry_after, other.retry_after) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(one), Some(other)) => one > other,
        }
    }
}
