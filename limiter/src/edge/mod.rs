//! The edge half: one source's state machine.

mod amend;
mod close;
mod count;
mod decide;
mod entry;
mod judge;
mod late;
mod outbox;
mod reply;
mod send;
mod spend;
mod stats;
mod table;
mod verdict;

use alloc::{string::String, sync::Arc, vec::Vec};

use ahash::RandomState;

pub use crate::wire::{Outgoing, ReplyError};
use crate::{
    borrow::{Crowded, Lease, Link},
    rule::{Consistency, Rule, Scope},
    ruleset::RuleSet,
    time::{Micros, Timestamp},
};
pub use close::{Answered, Open};
use count::Count;
use late::Late;
use outbox::Outbox;
pub use stats::{RuleStats, SourceStats};
use table::{Slot, Table};

/// One source: decides from memory, reports what it counted, asks when it has
/// run out. Every `now` is the host's own wall clock; what the region's clock
/// says is learned from its replies.
pub struct Limiter {
    identity: Identity,
    settings: Settings,
    rules: Arc<RuleSet>,
    rule_stats: Vec<RuleStats>,
    stats: SourceStats,
    table: Table,
    link: Link,
    outbox: Outbox,
    /// Keys to be claimed with the next flush.
    dirty: Vec<Slot>,
    /// Keys to be claimed at once.
    asking: Vec<Slot>,
    hasty: Hasty,
    /// Hits of windows that have passed, not in a batch yet.
    late: Late,
    message: u64,
    /// Decisions made.
    turn: u64,
    next_flush: Timestamp,
    /// Sources that the region knows of.
    sources: Count,
    /// Regions that share limits of scope `global`.
    regions: Count,
    crowd: Crowded,
    far: Far,
    /// The region's clock in the latest reply.
    heard_us: u64,
}

/// Who a source is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Random, never used again.
    pub source: u64,
    /// Which of its lives: greater in every later one. Microseconds since the
    /// Unix epoch at its start will do.
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

/// Whether requests cannot wait for the region: some rule's patience ends before
/// an answer can come.
#[derive(Default)]
struct Far {
    /// The shortest patience of all rules; none if no rule ever asks.
    hold_min: Option<Micros>,
    /// What the region was last told.
    told: bool,
    /// What it has answered to.
    known: bool,
}

/// Keys that cannot wait for the next flush: much of their limit flows back until
/// then.
#[derive(Default)]
struct Hasty {
    keys: Vec<Slot>,
    /// When the first of them is due.
    due: Timestamp,
    /// How soon after a hit, by the rule's place; none of a rule that can wait.
    within: Vec<Option<Micros>>,
}

impl Limiter {
    /// A source that knows no rules yet and admits everything until it does.
    pub fn new(identity: Identity, settings: Settings) -> Self {
        let [a, b, c, d] = settings.hash_seeds;
        Self {
            message: identity.epoch,
            outbox: Outbox::new(identity.epoch),
            table: Table::new(RandomState::with_seeds(a, b, c, d), settings.keys_max),
            crowd: Crowded::new(RandomState::with_seeds(b, c, d, a)),
            heard_us: 0,
            far: Far::default(),
            identity,
            settings,
            rules: Arc::new(RuleSet::empty()),
            rule_stats: Vec::new(),
            stats: SourceStats::default(),
            link: Link::default(),
            dirty: Vec::new(),
            asking: Vec::new(),
            hasty: Hasty::default(),
            late: Late::new(settings.keys_max),
            turn: 0,
            next_flush: Timestamp::default(),
            sources: Count::UNKNOWN,
            regions: Count::UNKNOWN,
        }
    }

    /// The rules in force. `rules().resolve(&request)` makes a [`Query`].
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Puts rules in force. Keys whose rule keeps its name, key, window and
    /// algorithm keep their counts; what was lent under the old rules is void,
    /// and so is a penalty that is another now.
    pub fn set_rules(&mut self, rules: Arc<RuleSet>) {
        let mut stats = alloc::vec![RuleStats::default(); rules.len()];
        for (place, old) in self.rule_stats.iter().enumerate() {
            let kept = self.rules.id(place).and_then(|id| rules.by_id(id));
            if let Some(new) = kept.and_then(|place| stats.get_mut(place)) {
                *new = *old;
            }
        }
        self.rule_stats = stats;
        let penalty = |rules: &RuleSet, place: Option<u32>| {
            let rule = place.and_then(|place| rules.rule(place as usize));
            rule.map(|rule| rule.penalty)
        };
        for entry in self.table.iter_mut() {
            let before = penalty(&self.rules, entry.place);
            entry.place = rules
                .by_id(entry.rule)
                .and_then(|place| u32::try_from(place).ok());
            if penalty(&rules, entry.place) != before {
                entry.penalty_until = Timestamp::default();
            }
            entry.lease = Lease {
                at: entry.lease.at,
                ..Lease::default()
            };
            entry.claim.answered = false;
        }
        let leased = |rule: &Rule| rule.consistency == Consistency::Leased;
        let asks = |rule: &&Rule| rule.limits() && rule.scope != Scope::Pop && leased(rule);
        self.far.hold_min = rules.rules().filter(asks).map(|rule| rule.hold).min();
        let interval = self.settings.flush_interval;
        let within = |rule: &Rule| rule.report_interval().filter(|at| *at < interval);
        self.hasty.within = rules.rules().map(within).collect();
        self.rules = rules;
    }

    /// The region's clock, or the host's while that is all there is.
    fn region_now(&self, now: Timestamp) -> Timestamp {
        self.link.region_time(now).unwrap_or(now)
    }

    /// Has a key claimed with the next flush, or sooner where its rule says so.
    fn mark_dirty(&mut self, slot: Option<Slot>, rule: usize, now: Timestamp) {
        let Some(slot) = slot else {
            self.next_flush = Timestamp::default();
            return;
        };
        let Some(entry) = self.table.get_mut(slot) else {
            return;
        };
        entry.claim.idle = false;
        if !entry.shared {
            return;
        }
        if !entry.claim.dirty {
            entry.claim.dirty = true;
            self.dirty.push(slot);
        }
        let within = self.hasty.within.get(rule).copied().flatten();
        if let Some(within) = within
            && !entry.claim.hasty
        {
            entry.claim.hasty = true;
            let due = now.after(within);
            let first = self.hasty.keys.is_empty();
            self.hasty.due = if first { due } else { self.hasty.due.min(due) };
            self.hasty.keys.push(slot);
        }
    }

    /// Has a key claimed at once.
    fn ask(&mut self, slot: Slot) {
        if let Some(entry) = self.table.get_mut(slot)
            && !entry.claim.asking
        {
            entry.claim.asking = true;
            self.asking.push(slot);
        }
    }

    /// What each rule has decided since the last call, by its place in the set.
    /// What a rule has that new rules no longer know is gone with it: call this
    /// before a reply is handled.
    pub fn take_rule_stats(&mut self) -> Vec<RuleStats> {
        let fresh = alloc::vec![RuleStats::default(); self.rules.len()];
        core::mem::replace(&mut self.rule_stats, fresh)
    }

    /// What it holds and has done.
    pub fn stats(&self, now: Timestamp) -> SourceStats {
        SourceStats {
            keys: self.table.len() as u64,
            last_reply_ago: self.link.last_reply.map(|at| now.since(at)),
            away: self.link.is_away(now),
            ..self.stats
        }
    }
}
