//! Requests that are decided here, and when that is told.

use std::{sync::Arc, time::Duration};

use limiter::{
    decision::{Decision, Tier, Verdict},
    request::{Hit, Query},
    rule::{Commit, Cost},
    ruleset::RuleSet,
    time::Micros,
};
use smallvec::SmallVec;

use super::{
    Task, TaskError,
    admission::Permit,
    books::{Owner, journaled},
    work::{Answer, Check, Checked, Refusal},
};
use crate::store::Position;

/// How long what a fast check spent may wait for a commit to begin: what a crash
/// can take is what was spent so within this time, and what was being written.
const AHEAD_MAX: Duration = Duration::from_millis(10);

/// What is said of a request that no rule has a word on.
const NO_RULE: Decision = Decision {
    rule: usize::MAX,
    limit: 0,
    remaining: 0,
    reset_after: Micros::ZERO,
    retry_after: None,
    tier: Tier::Region,
    shadowed: false,
};

/// Since when something that was told waits for a commit to begin.
#[derive(Default)]
pub(super) struct Ahead(Option<Duration>);

impl Ahead {
    /// Whether something may be told ahead of its commit; if so, it is.
    fn allow(&mut self, uptime: Duration) -> bool {
        let since = *self.0.get_or_insert(uptime);
        uptime.saturating_sub(since) < AHEAD_MAX
    }

    /// A commit has begun, with all that was told so far.
    pub(super) fn begin_commit(&mut self) {
        self.0 = None;
    }
}

impl Task {
    pub(super) fn check(
        &mut self,
        check: Check,
        answer: Answer<Checked>,
        permit: Permit,
    ) -> Result<(), TaskError> {
        let now = self.clock.now();
        let (query, named) = match resolve(self.books.ledger.rules(), &check) {
            Ok(resolved) => resolved,
            Err(refusal) => {
                drop(answer.send(Err(refusal)));
                return Ok(());
            }
        };
        let ledger = &mut self.books.ledger;
        let verdict = journaled(&mut self.log, Owner::Ledger, |records| {
            ledger.check(&query, now, records)
        })?;
        let (allowed, decision) = match verdict {
            Verdict::Allow(decision) => (true, decision),
            Verdict::Deny(decision) => (false, decision),
            Verdict::Pass | Verdict::Hold { .. } => (true, NO_RULE),
        };
        let checked = Checked {
            rules: Arc::clone(&query.rules),
            place: named.unwrap_or(decision.rule),
            now,
            allowed,
            decision,
        };
        if let Some(rule) = checked.rule() {
            self.metrics.count_check(rule, allowed);
        }
        let rests_on = self.checked_rests_on(&query);
        self.answer(rests_on, checked, answer, Some(permit));
        Ok(())
    }

    /// What has to be durable before a check is answered: the rules only, if all
    /// that apply say so, and as long as a commit begins soon.
    fn checked_rests_on(&mut self, query: &Query) -> Position {
        let mut rules = query.hits.iter().map(|hit| query.rules.rule(hit.rule));
        let fast = rules.all(|rule| rule.is_some_and(|rule| rule.commit == Commit::Fast));
        match fast && self.ahead.allow(self.clock.uptime()) {
            true => self.rules_at,
            false => self.log.last(),
        }
    }
}

/// What is to be spent, and the place of the rule that was named.
pub(super) fn resolve(
    rules: &Arc<RuleSet>,
    check: &Check,
) -> Result<(Query, Option<usize>), Refusal> {
    let (name, tier, key, cost) = match check {
        Check::Described(request) => return Ok((rules.resolve(request), None)),
        Check::Named {
            rule,
            tier,
            key,
            cost,
        } => (rule, tier, key, cost),
    };
    let found = rules.by_name(name);
    let Some((place, rule)) = found.and_then(|place| Some((place, rules.rule(place)?))) else {
        return Err(Refusal::UnknownRule {
            rule: name.clone(),
            known: rules
                .rules()
                .filter(|rule| rule.tier.is_none())
                .map(|rule| rule.name.clone())
                .collect(),
        });
    };
    let values: Vec<&[u8]> = key.iter().map(String::as_bytes).collect();
    if values.len() != rule.arity() {
        return Err(Refusal::KeyParts {
            rule: name.clone(),
            expected: rule.arity(),
            got: values.len(),
        });
    }
    let place = match tier {
        Some(tier) => of_tier(rules, name, tier)?,
        None => rules.for_key(name, &values).unwrap_or(place),
    };
    let rule = rules.rule(place).unwrap_or(rule);
    let key = rules
        .key_of(place, &values)
        .ok_or_else(|| Refusal::KeyValue { rule: name.clone() })?;
    let mut hits = SmallVec::new();
    if !rule.unlimited {
        hits.push(Hit {
            rule: place,
            key,
            cost: cost.unwrap_or_else(|| unasked(&rule.cost)),
        });
    }
    let rules = Arc::clone(rules);
    Ok((Query { rules, hits }, Some(place)))
}

/// The place of the rule of this name for this tier.
fn of_tier(rules: &RuleSet, name: &str, tier: &str) -> Result<usize, Refusal> {
    let mut tiers = rules.tiers_of(name);
    let found = tiers.find(|(known, _)| *known == tier);
    found.map(|(_, place)| place).ok_or_else(|| {
        let known = rules.tiers_of(name).map(|(tier, _)| tier.to_owned());
        Refusal::UnknownTier {
            rule: name.to_owned(),
            tier: tier.to_owned(),
            known: known.collect(),
        }
    })
}

/// What a check spends that does not say how much: no request is there whose header
/// would say it, nor a response.
fn unasked(cost: &Cost) -> u64 {
    match cost {
        Cost::RequestHeader { default, .. } => (*default).max(1),
        cost => cost.most_upfront(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_told_ahead_of_a_commit_that_does_not_begin_within_10_ms() {
        let mut ahead = Ahead::default();
        let at = Duration::from_millis;
        assert!(ahead.allow(at(100)) && ahead.allow(at(109)));
        assert!(!ahead.allow(at(110)) && !ahead.allow(at(500)));
        ahead.begin_commit();
        assert!(ahead.allow(at(501)));
    }
}
