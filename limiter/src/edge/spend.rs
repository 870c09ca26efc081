//! What a decision costs: hits counted, leases spent, denials noted.

use super::{
    Limiter,
    decide::{Part, Parts},
    judge::Answer,
};
use crate::{
    borrow::tokens,
    decision::{Decision, Tier},
    rule::Scope,
    time::{Micros, Timestamp},
    window::WindowIndex,
};

impl Limiter {
    /// Counts what an admitted request spends under one rule.
    pub(super) fn spend(&mut self, part: &Part, now: Timestamp) {
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
        let flush = (!self.far.known).then(|| self.next_flush.since(now));
        let ask = entry.runs_low(part.answer, self.link.rtt, flush, now);
        self.late.add(late);
        if let (true, Some(slot)) = (ask, part.slot) {
            self.ask(slot);
        }
    }

    /// Counts a denied request where the rule says so.
    pub(super) fn count_denied(&mut self, part: &Part, now: Timestamp) {
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

    /// Notes a denial, and that the limit was exceeded: its rule may say that this
    /// is to be felt for longer, and by the whole fleet.
    pub(super) fn note_denial(&mut self, decision: &Decision, parts: &Parts, now: Timestamp) {
        if let Some(stats) = self.rule_stats.get_mut(decision.rule) {
            stats.denied = stats.denied.saturating_add(1);
        }
        let penalty = self
            .rules
            .rule(decision.rule)
            .map_or(Micros::ZERO, |rule| rule.penalty);
        let mut exceeding = parts
            .iter()
            .filter(|part| part.hit.rule == decision.rule && part.answer.exceeds());
        let Some(slot) = exceeding.next().and_then(|part| part.slot) else {
            return;
        };
        if let Some(entry) = self.table.get_mut(slot)
            && penalty > Micros::ZERO
            && entry.penalty_until <= now
        {
            entry.penalty_until = now.after(penalty);
            if entry.shared {
                entry.claim.exceeded = true;
                self.ask(slot);
            }
        }
    }
}
