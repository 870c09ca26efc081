//! Rules: what a request must look like, what it is counted under, how much is
//! allowed, and how that is enforced.

use alloc::{borrow::Cow, format, string::String, sync::Arc, vec::Vec};

use core::num::NonZeroU64;

use crate::{
    list::List,
    quota::{Algorithm, Quota},
    time::Micros,
    window::Window,
};

mod attribute;
mod condition;
mod cost;
mod key_part;
mod pattern;
mod quota_headers;
mod refund;
pub mod response;
pub mod text;
mod validate;

pub use attribute::{Attribute, AttributeError, AttributeValueError};
pub use condition::{Condition, Expect};
pub use cost::Cost;
pub use key_part::KeyPart;
pub(crate) use pattern::like;
pub use pattern::{HostPattern, PathPattern, SEGMENTS_MAX};
pub use quota_headers::{HeaderForm, QuotaHeaders, TellWhen};
pub use refund::{REFUNDS_MAX, StatusMatch};
pub use response::Response;
pub use validate::{
    CONDITIONS_ALL_MAX, CONDITIONS_MAX, HITS_MAX, HOLD_MAX, KEY_PARTS_MAX, NESTING_MAX, RuleError,
    TOLERANCE_PPM_MAX, VALUES_MAX, WINDOW_MAX,
};

/// How far over its limit a rule may lead unless it says otherwise: 2 %.
pub const TOLERANCE_PPM_DEFAULT: u32 = 20_000;

/// How long a request may wait for the region unless the rule says otherwise.
pub const HOLD_DEFAULT: Micros = Micros::from_millis(5);

#[allow(clippy::panic, reason = "the compiler evaluates it")]
const SECOND: Window = match Window::new(Micros::from_secs(1)) {
    Some(window) => window,
    None => panic!("a second is not zero"),
};

/// One rule, as it was written. Its name, and its tier if it has one, are its identity
/// across revisions ([`Rule::identity`]).
///
/// A rule that sets some tiers apart is several, one for each of them and one for
/// everybody else. They share a name and differ in `tier` and `when`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Unique within a rule set.
    pub name: String,
    /// The tier it is for; none: everybody, or everybody else.
    pub tier: Option<String>,
    /// All of them must hold for the rule to apply; none: it always applies.
    pub conditions: Vec<Condition>,
    /// What must hold besides: that a request is of its tier, or of none that others
    /// of its name are for.
    pub when: Vec<Condition>,
    /// Whether nothing limits those that it is for: it applies to nothing, and its
    /// quota is not looked at.
    pub unlimited: bool,
    /// What a count is kept per; none: one count for all.
    pub key: Vec<KeyPart>,
    /// How much is allowed.
    pub quota: Quota,
    /// What one request spends.
    pub cost: Cost,
    /// Statuses of a response for which its request has spent nothing.
    pub refund: Vec<StatusMatch>,
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
    /// When the region answers a check.
    pub commit: Commit,
    /// What a denied client is answered; none: 429 and a problem document.
    pub response: Option<Response>,
    /// Which headers tell a client of its quota.
    pub quota_headers: QuotaHeaders,
}

impl Rule {
    /// A rule that applies to every request, counts all of them together, and
    /// has what a rule has that says no more than its limit.
    pub fn new(name: impl Into<String>, quota: Quota) -> Self {
        Self {
            name: name.into(),
            tier: None,
            conditions: Vec::new(),
            when: Vec::new(),
            unlimited: false,
            key: Vec::new(),
            quota,
            cost: Cost::default(),
            refund: Vec::new(),
            count_denied: false,
            scope: Scope::default(),
            consistency: Consistency::default(),
            local_cap: quota.limit.get(),
            tolerance_ppm: TOLERANCE_PPM_DEFAULT,
            hold: HOLD_DEFAULT,
            on_failure: OnFailure::default(),
            action: Action::default(),
            penalty: Micros::ZERO,
            commit: Commit::default(),
            response: None,
            quota_headers: QuotaHeaders::default(),
        }
    }

    /// A rule of which no more is understood than its name: it keeps its place
    /// and applies to nothing.
    pub fn unsupported(name: impl Into<String>) -> Self {
        let quota = Quota::new(NonZeroU64::MIN, SECOND, Algorithm::default());
        let mut rule = Self::new(name, quota);
        rule.conditions.push(Condition::Unsupported);
        rule
    }

    /// How often its keys have to be reported; none: a flush is soon enough.
    pub fn report_interval(&self) -> Option<Micros> {
        match self.scope {
            Scope::Global => Some(self.quota.part_of_refill()),
            Scope::Pop | Scope::Region => self.quota.report_interval(),
        }
    }

    /// The quota that a source keeps on its own when it cannot ask; none if it may
    /// then admit nothing.
    pub fn local_quota(&self) -> Option<Quota> {
        let limit = NonZeroU64::new(self.local_cap)?;
        if limit == self.quota.limit {
            return Some(self.quota);
        }
        let scaled = u128::from(self.quota.capacity()) * u128::from(limit.get())
            / u128::from(self.quota.limit.get());
        let burst = u64::try_from(scaled)
            .ok()
            .and_then(NonZeroU64::new)
            .unwrap_or(NonZeroU64::MIN);
        Some(Quota::new(limit, self.quota.window, self.quota.algorithm).with_burst(burst))
    }

    /// What tells it from all other rules of a set, and its counters from theirs: its
    /// name, with `@` and its tier if it has one.
    pub fn identity(&self) -> Cow<'_, str> {
        match &self.tier {
            Some(tier) => format!("{}@{tier}", self.name).into(),
            None => (&*self.name).into(),
        }
    }

    /// Every list that it looks at, as often as it does.
    pub fn lists(&self) -> Vec<&Arc<List>> {
        let mut lists = Vec::new();
        self.all_conditions().for_each(|one| one.lists(&mut lists));
        lists
    }

    /// All that must hold for it to apply.
    pub fn all_conditions(&self) -> impl Iterator<Item = &Condition> {
        self.conditions.iter().chain(&self.when)
    }

    /// Whether all of it is understood. One that is not applies to nothing.
    pub fn is_supported(&self) -> bool {
        !self.conditions.contains(&Condition::Unsupported)
    }

    /// Whether there is any request that it applies to.
    pub fn limits(&self) -> bool {
        self.is_supported() && !self.unlimited
    }

    /// Whether a response changes what its request has spent.
    pub fn settles_late(&self) -> bool {
        self.cost.response_header().is_some() || !self.refund.is_empty()
    }

    /// Whether it has anything to do with the response to an allowed request.
    pub fn sees_responses(&self) -> bool {
        self.limits() && (self.settles_late() || self.quota_headers.on_allowed())
    }

    /// How many values name one of its counters: as many as its key has parts
    /// that requests differ in.
    pub fn arity(&self) -> usize {
        self.varying().count()
    }

    /// The part of the key that lists of keys are about: the first that requests
    /// differ in, also if it may be missing.
    pub fn listed_part(&self) -> Option<&KeyPart> {
        self.varying().next()
    }

    /// The parts that requests differ in, without their question marks.
    fn varying(&self) -> impl Iterator<Item = &KeyPart> {
        let plain = self.key.iter().map(|part| match part {
            KeyPart::Optional(part) => part,
            part => part,
        });
        plain.filter(|part| !matches!(part, KeyPart::Constant(_)))
    }
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

/// When the region answers a request that it decides itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    /// Once what it spent is durable.
    #[default]
    Durable,
    /// At once, as long as what it spent begins to be written within 10 ms. A
    /// crash loses what was not written.
    Fast,
}
