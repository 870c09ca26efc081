//! Rules: what a request must look like, what it is counted under, how much is
//! allowed, and how that is enforced.

use alloc::{string::String, vec::Vec};

use crate::{quota::Quota, time::Micros};

mod condition;
mod key_part;

pub use condition::{Condition, Expect};
pub use key_part::KeyPart;

/// One rule, as it was written. Its name is its identity across revisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Unique within a rule set.
    pub name: String,
    /// All of them must hold for the rule to apply; none: it always applies.
    pub conditions: Vec<Condition>,
    /// What a count is kept per; none: one count for all.
    pub key: Vec<KeyPart>,
    /// How much is allowed.
    pub quota: Quota,
    /// Hits that one request spends.
    pub cost: u64,
    /// Whether a denied request spends, too.
    pub count_denied: bool,
    /// Among whom the limit is shared.
    pub scope: Scope,
    /// How it is kept.
    pub consistency: Consistency,
    /// The most that one source may admit per window when it cannot ask.
    pub local_cap: u64,
    /// How far over the limit cold credit and debt may lead, in millionths of it.
    pub tolerance_ppm: u32,
    /// How long a request may wait for the region.
    pub hold: Micros,
    /// What happens when the region is away.
    pub on_failure: OnFailure,
    /// Whether a denial is carried out.
    pub action: Action,
    /// How long a key stays denied once it has exceeded its limit.
    pub penalty: Micros,
}

/// Among whom a limit is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Each source on its own.
    Pop,
    /// All sources of a region.
    #[default]
    Region,
    /// All sources of all regions.
    Global,
}

/// How a shared limit is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Never waits: the local cap and the last totals decide.
    Edge,
    /// A source spends what the region has lent it.
    #[default]
    Leased,
    /// The region decides every request.
    Exact,
}

/// What a source does when the region is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnFailure {
    /// For a key that the region has never lent it anything for.
    pub no_lease: Fallback,
    /// For a key whose lease ran out while the region was away.
    pub lease_expired: Fallback,
}

/// The answer to a request that nobody can be asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// Admit it within the local cap, and count it as leaked.
    #[default]
    Allow,
    /// Deny it.
    Deny,
}

/// Whether a denial is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It is.
    #[default]
    Deny,
    /// It is counted and reported, and the request goes through.
    Shadow,
}
