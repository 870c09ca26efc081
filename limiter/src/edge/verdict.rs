//! One answer made of all rules' answers, in numbers.

use super::{
    Limiter,
    decide::{Part, Parts},
    judge::Answer,
};
use crate::{
    decision::{Decision, Tier, Verdict},
    request::{Hit, Query},
    rule::{Action, Rule, Scope},
    time::{Micros, Timestamp},
};

/// What a client is told to wait whose request could not wait for the region.
const LATE_RETRY: Micros = Micros::from_secs(1);

impl Limiter {
    /// The denial that frees last, if any rule denies.
    pub(super) fn worst(&self, parts: &Parts, now: Timestamp) -> Option<Decision> {
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
            let retry_after = retry_after.map(|wait| self.no_sooner(part, tier, wait, now));
            let decision = self.decision(part, rule, tier, retry_after, now);
            if worst.is_none_or(|known| decision.frees_after(&known)) {
                worst = Some(decision);
            }
        }
        worst
    }

    /// A wait that is no shorter than the books, as last told, have no room for. What
    /// keeps a source from asking, and a penalty, may end before that.
    fn no_sooner(&self, part: &Part, tier: Tier, wait: Micros, now: Timestamp) -> Micros {
        let entry = part.slot.and_then(|slot| self.table.get(slot));
        match entry.filter(|entry| entry.shared && tier != Tier::Fallback) {
            Some(entry) => wait.max(entry.lease.retry.since(now)),
            None => wait,
        }
    }

    /// The decision of the rule with the least left.
    pub(super) fn allowance(&self, parts: &Parts, now: Timestamp) -> Verdict {
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

    /// What the rule of a hit would say of an allowed request, in numbers; none if it
    /// is gone.
    pub fn standing(&self, query: &Query, hit: &Hit, now: Timestamp) -> Option<Decision> {
        let place = self.rules.by_id(query.rules.id(hit.rule)?)?;
        let rule = self.rules.rule(place)?;
        let tier = match rule.scope {
            Scope::Pop => Tier::Local,
            Scope::Region | Scope::Global => Tier::Lease,
        };
        let part = Part {
            hit: *hit,
            slot: self.table.find(hit.key),
            answer: Answer::Yes(tier),
        };
        Some(self.decision(&part, rule, tier, None, now))
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
}
