//! A request's way through the rules: each is asked, then all are spent from, or
//! none.

use alloc::sync::Arc;

use smallvec::SmallVec;

use super::{
    Limiter,
    entry::Entry,
    judge::{Answer, Circumstances, judge},
    table::Slot,
};
use crate::{
    decision::{Tier, Verdict},
    request::{Hit, Query},
    rule::{Action, Consistency, Fallback, Rule, Scope},
    time::{Micros, Timestamp},
};

/// One rule's part in a decision.
pub(super) struct Part {
    pub(super) hit: Hit,
    pub(super) slot: Option<Slot>,
    pub(super) answer: Answer,
}

pub(super) type Parts = SmallVec<[Part; 4]>;

/// Which time a request is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighing {
    First,
    Again,
    Last,
}

impl Limiter {
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
            heard: self.link.has_answered(),
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
            at.sources = match rule.scope {
                Scope::Global => self.sources.times(self.regions),
                Scope::Pop | Scope::Region => self.sources,
            };
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
            self.mark_dirty(part.slot, part.hit.rule, now);
            match denied {
                None => self.spend(part, now),
                Some(_) => self.count_denied(part, now),
            }
            if part.answer == Answer::Late && weighing == Weighing::First {
                self.ask_late(part, now);
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

    fn must_wait(&self, part: &Part) -> bool {
        let watches = self
            .rules
            .rule(part.hit.rule)
            .is_some_and(|rule| rule.action == Action::Shadow);
        part.answer == Answer::Ask && !watches
    }

    /// Whether waiting for the region is of no use: no answer can come in time.
    fn cannot_wait(&self, rule: &Rule) -> bool {
        let late = rule.hold <= self.link.rtt && rule.consistency != Consistency::Exact;
        rule.hold == Micros::ZERO || late
    }

    /// Holds a request, and asks for what it lacks unless that is under way.
    fn hold(&mut self, parts: &Parts, now: Timestamp, weighing: Weighing) -> Verdict {
        let overdue = self.link.overdue(now);
        let mut patience = Micros::new(u64::MAX);
        for part in parts {
            self.mark_dirty(part.slot, part.hit.rule, now);
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
            let awaits = entry.awaits_ack(now);
            if entry.lacks(part.hit.cost, true, weighing == Weighing::First, overdue) && !awaits {
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

    /// Asks for what a request lacked that could not wait for it.
    fn ask_late(&mut self, part: &Part, now: Timestamp) {
        let overdue = self.link.overdue(now);
        let Some(slot) = part.slot else { return };
        let entry = self.table.get_mut(slot);
        if entry.is_some_and(|entry| entry.lacks(part.hit.cost, false, true, overdue)) {
            self.ask(slot);
        }
    }
}

/// The answer for a key that there was no room to remember.
fn untracked(rule: &Rule) -> Answer {
    match rule.on_failure.no_lease {
        Fallback::Allow => Answer::Yes(Tier::Fallback),
        Fallback::Deny => Answer::No(Tier::Fallback, Some(Micros::from_secs(1))),
    }
}
