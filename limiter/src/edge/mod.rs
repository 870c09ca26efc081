//! The edge half: one source's state machine.

mod crowd;
mod entry;
mod judge;
mod late;
mod link;
mod outbox;
mod reply;
mod send;
mod stats;
mod table;

use alloc::{string::String, sync::Arc, vec::Vec};

use ahash::RandomState;
use smallvec::SmallVec;

use crate::{
    decision::{Decision, Tier, Verdict},
    request::{Hit, Query},
    rule::{Action, Consistency, Fallback, Rule, Scope},
    ruleset::RuleSet,
    time::{Micros, Timestamp},
    window::WindowIndex,
};
use crowd::Crowd;
use entry::{Entry, tokens};
use judge::{Answer, Circumstances, judge};
use late::Late;
use link::Link;
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
    /// Hits of windows that have passed, not in a batch yet.
    late: Late,
    message: u64,
    /// Decisions made.
    turn: u64,
    next_flush: Timestamp,
    /// Sources that the region knows of.
    sources: u32,
    crowd: Crowd,
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
    /// It is not a `SyncReply`, or not to that message.
    #[error("the reply is not a sync reply to this message")]
    Malformed,
    /// The rules in it are refused; those in force stay.
    #[error("the rules in the reply are refused: {0}")]
    Rules(String),
}

/// What a client is told to wait whose request could not wait for the region.
const LATE_RETRY: Micros = Micros::from_secs(1);

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

/// One rule's part in a decision.
struct Part {
    hit: Hit,
    slot: Option<Slot>,
    answer: Answer,
}

type Parts = SmallVec<[Part; 4]>;

impl Limiter {
    /// A source that knows no rules yet and admits everything until it does.
    pub fn new(identity: Identity, settings: Settings) -> Self {
        let [a, b, c, d] = settings.hash_seeds;
        Self {
            message: identity.epoch,
            outbox: Outbox::new(identity.epoch),
            table: Table::new(RandomState::with_seeds(a, b, c, d), settings.keys_max),
            crowd: Crowd::new(RandomState::with_seeds(b, c, d, a)),
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
            late: Late::new(settings.keys_max),
            turn: 0,
            next_flush: Timestamp::default(),
            sources: u32::MAX,
        }
    }

    /// The rules in force. `rules().resolve(&request)` makes a [`Query`].
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Puts rules in force. Keys whose rule keeps its name, key, window and
    /// algorithm keep their counts; what was lent under the old rules is void.
    pub fn set_rules(&mut self, rules: Arc<RuleSet>) {
        let mut stats = alloc::vec![RuleStats::default(); rules.len()];
        for (place, old) in self.rule_stats.iter().enumerate() {
            let kept = self.rules.id(place).and_then(|id| rules.by_id(id));
            if let Some(new) = kept.and_then(|place| stats.get_mut(place)) {
                *new = *old;
            }
        }
        self.rule_stats = stats;
        for entry in self.table.iter_mut() {
            entry.place = rules
                .by_id(entry.rule)
                .and_then(|place| u32::try_from(place).ok());
            entry.lease = entry::Lease {
                at: entry.lease.at,
                ..entry::Lease::default()
            };
            entry.claim.answered = false;
        }
        let asks =
            |rule: &&Rule| rule.scope != Scope::Pop && rule.consistency == Consistency::Leased;
        self.far.hold_min = rules.rules().filter(asks).map(|rule| rule.hold).min();
        self.rules = rules;
    }

    /// Decides a request that has just arrived.
    pub fn decide(&mut self, query: &Query, now: Timestamp) -> Verdict {
        let parts = self.weigh(query, now, Weighing::First);
        self.settle(&parts, now, Weighing::First)
    }

    /// Decides a request that was held, after a reply has come, or for the last
    /// time (`give_up`), when it is answered without waiting any longer. If it
    /// is still held, the time to give up is the one it was first told.
    pub fn decide_held(&mut self, query: &Query, now: Timestamp, give_up: bool) -> Verdict {
        let weighing = if give_up {
            Weighing::Last
        } else {
            Weighing::Again
        };
        let parts = self.weigh(query, now, weighing);
        self.settle(&parts, now, weighing)
    }

    /// Asks every rule, and spends nothing.
    fn weigh(&mut self, query: &Query, now: Timestamp, weighing: Weighing) -> Parts {
        self.turn = self.turn.wrapping_add(1);
        let mut at = Circumstances {
            now,
            region_now: self.region_now(now),
            away: self.link.is_away(now),
            sources: self.sources,
            waited: weighing != Weighing::First,
            impatient: false,
            far: self.far.known,
            crowd: &self.crowd,
        };
        let current = Arc::ptr_eq(&query.rules, &self.rules);
        let mut parts = Parts::new();
        for hit in &query.hits {
            let mut hit = *hit;
            if !current {
                match query.rules.id(hit.rule).and_then(|id| self.rules.by_id(id)) {
                    Some(place) => hit.rule = place,
                    None => continue,
                }
            }
            let (Some(rule), Some(id)) = (self.rules.rule(hit.rule), self.rules.id(hit.rule))
            else {
                continue;
            };
            let place = u32::try_from(hit.rule).unwrap_or(u32::MAX);
            let shared = rule.scope != Scope::Pop;
            let slot = self.table.find_or_insert(hit.key, self.turn, now, || {
                Entry::new(hit.key, id, place, shared)
            });
            at.impatient = weighing == Weighing::Last || self.cannot_wait(rule);
            let answer = match slot.and_then(|slot| self.table.get_mut(slot)) {
                Some(entry) => {
                    entry.touched = true;
                    entry.turn = self.turn;
                    if weighing == Weighing::First {
                        entry.claim.offered = entry.claim.offered.saturating_add(hit.cost);
                    }
                    judge(entry, rule, hit.cost, &at)
                }
                None => untracked(rule),
            };
            parts.push(Part { hit, slot, answer });
        }
        parts
    }

    /// Makes one verdict of all rules' answers, and carries it out.
    fn settle(&mut self, parts: &Parts, now: Timestamp, weighing: Weighing) -> Verdict {
        if parts.is_empty() {
            return Verdict::Pass;
        }
        let denied = self.worst(parts, now);
        if denied.is_none() && parts.iter().any(|part| self.must_wait(part)) {
            return self.hold(parts, now, weighing);
        }
        for part in parts {
            self.mark_dirty(part.slot);
            match denied {
                None => self.spend(part, now),
                Some(_) => self.count_denied(part, now),
            }
            if part.answer == Answer::Late && weighing == Weighing::First {
                self.ask_late(part);
            }
        }
        match denied {
            Some(decision) => {
                self.note_denial(&decision, parts, now);
                Verdict::Deny(decision)
            }
            None => self.allowance(parts, now),
        }
    }

    /// The denial that frees last, if any rule denies.
    fn worst(&self, parts: &Parts, now: Timestamp) -> Option<Decision> {
        let mut worst: Option<Decision> = None;
        for part in parts {
            let (tier, retry_after) = match part.answer {
                Answer::No(tier, retry_after) => (tier, retry_after),
                Answer::Late => (Tier::Lease, Some(LATE_RETRY)),
                Answer::Yes(_) | Answer::Ask => continue,
            };
            let Some(rule) = self.rules.rule(part.hit.rule) else {
                continue;
            };
            if rule.action == Action::Shadow {
                continue;
            }
            let decision = self.decision(part, rule, tier, retry_after, now);
            if worst.is_none_or(|known| decision.frees_after(&known)) {
                worst = Some(decision);
            }
        }
        worst
    }

    /// Whether waiting for the region is of no use: no answer can come in time.
    fn cannot_wait(&self, rule: &Rule) -> bool {
        let late = rule.hold <= self.link.rtt && rule.consistency != Consistency::Exact;
        rule.hold == Micros::ZERO || late
    }

    /// Asks for what a request lacked that could not wait for it.
    fn ask_late(&mut self, part: &Part) {
        let Some(slot) = part.slot else { return };
        let entry = self.table.get_mut(slot);
        if entry.is_some_and(|entry| entry.lacks(part.hit.cost, false, true)) {
            self.ask(slot);
        }
    }

    fn must_wait(&self, part: &Part) -> bool {
        let watches = self
            .rules
            .rule(part.hit.rule)
            .is_some_and(|rule| rule.action == Action::Shadow);
        part.answer == Answer::Ask && !watches
    }

    /// Holds a request, and asks for what it lacks unless that is under way.
    fn hold(&mut self, parts: &Parts, now: Timestamp, weighing: Weighing) -> Verdict {
        let mut patience = Micros::new(u64::MAX);
        for part in parts {
            self.mark_dirty(part.slot);
            if part.answer != Answer::Ask {
                continue;
            }
            if let Some(rule) = self.rules.rule(part.hit.rule) {
                patience = patience.min(rule.hold);
            }
            let Some(slot) = part.slot else { continue };
            let Some(entry) = self.table.get_mut(slot) else {
                continue;
            };
            if entry.lacks(part.hit.cost, true, weighing == Weighing::First) {
                self.ask(slot);
            }
        }
        if weighing == Weighing::First {
            self.stats.held = self.stats.held.saturating_add(1);
        }
        Verdict::Hold {
            until: now.after(patience),
        }
    }

    /// Counts what an admitted request spends under one rule.
    fn spend(&mut self, part: &Part, now: Timestamp) {
        let Some(rule) = self.rules.rule(part.hit.rule) else {
            return;
        };
        let (hit, region_now) = (part.hit, self.region_now(now));
        let shadowed = part.answer.denies();
        let leaked = part.slot.is_none() || part.answer == Answer::Yes(Tier::Fallback);
        let window = match self.link.region_time(now) {
            Some(time) => rule.quota.window.index(time),
            None => WindowIndex(0),
        };
        if let Some(stats) = self.rule_stats.get_mut(hit.rule) {
            stats.allowed = stats.allowed.saturating_add(1);
            stats.shadow_denied = stats.shadow_denied.saturating_add(u64::from(shadowed));
            stats.leaked = stats
                .leaked
                .saturating_add(if leaked { hit.cost } else { 0 });
        }
        let local = rule.local_quota().unwrap_or(rule.quota);
        let own = rule.scope == Scope::Pop;
        let Some(entry) = part.slot.and_then(|slot| self.table.get_mut(slot)) else {
            let lost = if own { 0 } else { hit.cost };
            self.stats.untracked = self.stats.untracked.saturating_add(lost);
            return;
        };
        entry
            .local
            .add(if own { &rule.quota } else { &local }, hit.cost, region_now);
        let spent = tokens(hit.cost);
        entry.lease.tokens = entry.lease.tokens.saturating_sub(spent);
        entry.lease.remaining = entry.lease.remaining.saturating_sub(hit.cost);
        entry.claim.spent = entry.claim.spent.saturating_add(spent);
        let late = part
            .slot
            .and_then(|slot| entry.report_hits(window, hit.cost, leaked, slot));
        let ask = entry.runs_low(part.answer, self.link.rtt, now);
        self.late.add(late);
        if let (true, Some(slot)) = (ask, part.slot) {
            self.ask(slot);
        }
    }

    /// Counts a denied request where the rule says so.
    fn count_denied(&mut self, part: &Part, now: Timestamp) {
        let counts = self
            .rules
            .rule(part.hit.rule)
            .is_some_and(|rule| rule.count_denied);
        let denied = part.answer.denies();
        if counts && denied && part.slot.is_some() {
            let stats = self.rule_stats.get(part.hit.rule).copied();
            self.spend(part, now);
            if let (Some(before), Some(stats)) = (stats, self.rule_stats.get_mut(part.hit.rule)) {
                *stats = before;
            }
        }
    }

    fn note_denial(&mut self, decision: &Decision, parts: &Parts, now: Timestamp) {
        if let Some(stats) = self.rule_stats.get_mut(decision.rule) {
            stats.denied = stats.denied.saturating_add(1);
        }
        let penalty = self
            .rules
            .rule(decision.rule)
            .map_or(Micros::ZERO, |rule| rule.penalty);
        let slot = parts.iter().find(|part| part.hit.rule == decision.rule);
        let entry = slot
            .and_then(|part| part.slot)
            .and_then(|slot| self.table.get_mut(slot));
        if let Some(entry) = entry
            && penalty > Micros::ZERO
            && entry.penalty_until <= now
        {
            entry.penalty_until = now.after(penalty);
        }
    }

    /// The decision of the rule with the least left.
    fn allowance(&self, parts: &Parts, now: Timestamp) -> Verdict {
        let mut least: Option<Decision> = None;
        let mut shadowed = false;
        for part in parts {
            // Only a rule that watches can be against it, or not know yet: what it
            // lets through is not covered by the region's word.
            let tier = match part.answer {
                Answer::Yes(tier) => tier,
                Answer::No(..) | Answer::Ask | Answer::Late => Tier::Debt,
            };
            shadowed |= part.answer.denies();
            let Some(rule) = self.rules.rule(part.hit.rule) else {
                continue;
            };
            let decision = self.decision(part, rule, tier, None, now);
            if least.is_none_or(|known| decision.remaining < known.remaining) {
                least = Some(decision);
            }
        }
        least.map_or(Verdict::Pass, |least| {
            Verdict::Allow(Decision { shadowed, ..least })
        })
    }

    /// What a rule says, in numbers, once its part is carried out.
    fn decision(
        &self,
        part: &Part,
        rule: &Rule,
        tier: Tier,
        retry_after: Option<Micros>,
        now: Timestamp,
    ) -> Decision {
        let quota = &rule.quota;
        let region_now = self.region_now(now);
        let entry = part.slot.and_then(|slot| self.table.get(slot));
        let own = || entry.map_or(0, |entry| entry.local.remaining(quota, region_now));
        let told = entry.filter(|entry| entry.claim.answered);
        let (remaining, reset_after) = match (tier, told) {
            (Tier::Local, _) | (_, None) => {
                let reset = entry.map(|entry| entry.local.reset_after(quota, region_now));
                (
                    own(),
                    reset.unwrap_or_else(|| quota.window.reset_after(region_now)),
                )
            }
            (_, Some(entry)) => (entry.known_remaining(), entry.lease.resets.since(now)),
        };
        let denied = retry_after.is_some() || part.answer.denies();
        Decision {
            rule: part.hit.rule,
            limit: quota.limit.get(),
            remaining: if denied && tier != Tier::Local {
                0
            } else {
                remaining
            },
            reset_after,
            retry_after,
            tier,
            shadowed: false,
        }
    }

    /// The region's clock, or the host's while that is all there is.
    fn region_now(&self, now: Timestamp) -> Timestamp {
        self.link.region_time(now).unwrap_or(now)
    }

    fn mark_dirty(&mut self, slot: Option<Slot>) {
        let Some(slot) = slot else {
            self.next_flush = Timestamp::default();
            return;
        };
        if let Some(entry) = self.table.get_mut(slot) {
            entry.claim.idle = false;
            if !entry.claim.dirty && entry.shared {
                entry.claim.dirty = true;
                self.dirty.push(slot);
            }
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

/// Which time a request is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighing {
    First,
    Again,
    Last,
}

/// The answer for a key that there was no room to remember.
fn untracked(rule: &Rule) -> Answer {
    match rule.on_failure.no_lease {
        Fallback::Allow => Answer::Yes(Tier::Fallback),
        Fallback::Deny => Answer::No(Tier::Fallback, Some(Micros::from_secs(1))),
    }
}

/// Whether this denial is the one to name: it frees later.
impl Decision {
    pub(crate) fn frees_after(&self, other: &Self) -> bool {
        match (self.retry_after, other.retry_after) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(one), Some(other)) => one > other,
        }
    }
}
