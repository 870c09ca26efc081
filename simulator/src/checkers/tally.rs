//! What the verdicts come to, counted from nothing else.

use limiter::{
    decision::{Decision, Tier, Verdict},
    edge::{Open, RuleStats, SourceStats},
    request::{Hit, Query},
    rule::{Rule, Scope},
};

/// Counts of a whole run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) admitted: u64,
    pub(crate) held: u64,
    /// Hits that were admitted, of all rules that the region counts.
    pub(crate) hits: u64,
    /// Those that were denied with them.
    pub(crate) hits_most: u64,
    /// Hits of admitted requests whose responses should have been waited for, and
    /// were not.
    pub(crate) unopened: u64,
    /// Hits admitted because nobody could be asked.
    pub(crate) leaked: u64,
    /// By the sources' own account.
    pub(crate) reported: Reported,
}

/// What the sources say of themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reported {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    pub(crate) leaked: u64,
    pub(crate) held: u64,
    pub(crate) asks: u64,
    pub(crate) deltas: u64,
    /// Hits that no book will ever have, for want of memory.
    pub(crate) untracked: u64,
}

impl Tally {
    /// A request has been answered.
    pub(crate) fn verdict(&mut self, query: &Query, verdict: &Verdict) {
        let shared = query.hits.iter().filter(|hit| {
            let rule = query.rules.rule(hit.rule);
            rule.is_some_and(|rule| rule.scope != Scope::Pop)
        });
        let hits = shared.map(|hit| hit.cost).sum::<u64>();
        self.hits_most += hits;
        match verdict {
            Verdict::Pass => self.admitted += 1,
            Verdict::Allow(decision) => self.allow(query, hits, decision),
            Verdict::Deny(_) | Verdict::Hold { .. } => {}
        }
    }

    fn allow(&mut self, query: &Query, hits: u64, decision: &Decision) {
        self.admitted += 1;
        self.hits += hits;
        if decision.tier == Tier::Fallback {
            let hits = query.hits.iter().filter(|hit| hit.rule == decision.rule);
            self.leaked += hits.map(|hit| hit.cost).sum::<u64>();
        }
    }

    /// A request was admitted, and this is what its source keeps of it until its
    /// response comes.
    pub(crate) fn opened(&mut self, query: &Query, open: Option<&Open>) {
        let late = |hit: &&Hit| {
            let rule = query.rules.rule(hit.rule);
            rule.is_some_and(|rule| rule.settles_late() && rule.scope != Scope::Pop)
        };
        let kept =
            |hit: &&Hit| open.is_some_and(|open| open.hits().any(|other| other.key == hit.key));
        let due = query.hits.iter().filter(late);
        self.unopened += due.filter(|hit| !kept(hit)).count() as u64;
    }

    /// What a request spent under one rule turns out to be another cost.
    pub(crate) fn settle(&mut self, rule: &Rule, spent: u64, cost: u64) {
        if rule.scope != Scope::Pop {
            self.hits = self.hits + cost - spent;
            self.hits_most += cost.saturating_sub(spent);
        }
    }

    /// A source's life has ended, and this is its account of it.
    pub(crate) fn report(&mut self, rules: &[RuleStats], stats: &SourceStats) {
        let reported = &mut self.reported;
        for rule in rules {
            reported.allowed += rule.allowed;
            reported.denied += rule.denied;
            reported.leaked += rule.leaked;
        }
        reported.held += stats.held;
        reported.asks += stats.asks;
        reported.deltas += stats.deltas;
        reported.untracked += stats.untracked;
    }
}
