//! One request after the other, to the ledger.

use std::sync::Arc;

use limiter::{
    decision::{Decision, Tier, Verdict},
    request::{Hit, Query},
    ruleset::RuleSet,
    time::Micros,
    wire::{Batch, SyncReply, SyncRequest},
};
use smallvec::smallvec;

use super::{
    Task, TaskError,
    admission::Permit,
    recovery::Records,
    waiting::Outcome,
    work::{Answer, Check, Checked, Refusal, Request},
};
use crate::{
    serve::health::Health,
    store::{Log, Position},
};

/// Bytes that may wait for a commit before no more requests are applied: the
/// log's buffer always has room for the records of one more.
const UNCOMMITTED_BYTES_MAX: u64 = 16 << 20;

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

impl Task {
    /// Applies what was asked, as long as the log takes it.
    pub(super) fn apply_queue(&mut self) -> Result<(), TaskError> {
        if let Some(why) = self.commits.obstacle() {
            for (request, _permit) in self.queue.drain(..) {
                refuse(request, why.clone());
            }
        }
        while self.log.waiting_bytes() < UNCOMMITTED_BYTES_MAX
            && let Some((request, permit)) = self.queue.pop_front()
        {
            match request {
                Request::Sync(message, answer) => self.sync(message, answer, permit)?,
                Request::Check(check, answer) => self.check(&check, answer, permit)?,
            }
        }
        Ok(())
    }

    fn sync(
        &mut self,
        message: SyncRequest,
        answer: Answer<SyncReply>,
        permit: Permit,
    ) -> Result<(), TaskError> {
        let now = self.clock.now();
        let deltas = deltas(&message);
        let result = journaled(&mut self.log, |records| {
            self.ledger.sync(message, now, records)
        })?;
        match result {
            Ok(reply) => {
                self.metrics.count_sync(&deltas, &reply);
                let rests_on = match deltas.is_empty() {
                    // What is lent is not on record, so an ask waits for no disk.
                    true => self.rules_at,
                    false => self.log.last(),
                };
                self.answer(rests_on, Outcome::Sync(reply, answer), Some(permit));
            }
            Err(error) => {
                self.metrics.refused_syncs.inc();
                drop(answer.send(Err(error.into())));
            }
        }
        Ok(())
    }

    fn check(
        &mut self,
        check: &Check,
        answer: Answer<Checked>,
        permit: Permit,
    ) -> Result<(), TaskError> {
        let now = self.clock.now();
        let query = match resolve(self.ledger.rules(), check) {
            Ok(query) => query,
            Err(refusal) => {
                drop(answer.send(Err(refusal)));
                return Ok(());
            }
        };
        let verdict = journaled(&mut self.log, |records| {
            self.ledger.check(&query, now, records)
        })?;
        let (allowed, decision) = match verdict {
            Verdict::Allow(decision) => (true, decision),
            Verdict::Deny(decision) => (false, decision),
            Verdict::Pass | Verdict::Hold { .. } => (true, NO_RULE),
        };
        self.metrics.count_check(&check.rule, allowed);
        let rule = query.rules.rule(decision.rule);
        let checked = Checked {
            rule: check.rule.clone(),
            window_us: rule.map_or(0, |rule| rule.quota.window.length().get()),
            now,
            allowed,
            decision,
        };
        self.answer(
            self.log.last(),
            Outcome::Check(checked, answer),
            Some(permit),
        );
        Ok(())
    }

    /// Puts rules in force under the next revision, unless they say the same
    /// as those that are.
    pub(super) fn set_rules(
        &mut self,
        mut rules: RuleSet,
        answer: Answer<u64>,
    ) -> Result<(), TaskError> {
        if let Some(why) = self.commits.obstacle() {
            drop(answer.send(Err(why)));
            return Ok(());
        }
        rules.revision = self.ledger.rules().revision;
        if rules != **self.ledger.rules() || rules.revision == 0 {
            rules.revision = rules.revision.saturating_add(1);
            let (now, rules) = (self.clock.now(), Arc::new(rules));
            journaled(&mut self.log, |records| {
                self.ledger.set_rules(rules, now, records)
            })?;
            self.rules_at = self.log.last();
            self.report_serving();
        }
        let revision = self.ledger.rules().revision;
        self.answer(self.rules_at, Outcome::Rules(revision, answer), None);
        Ok(())
    }

    pub(super) fn report_serving(&self) {
        let rules_revision = self.ledger.rules().revision;
        self.health.set(Health::Serving { rules_revision });
    }

    fn answer(&mut self, rests_on: Position, outcome: Outcome, permit: Option<Permit>) {
        if rests_on <= self.log.durable(self.commits.durability()) {
            outcome.release();
        } else {
            // Behind those that came before: positions grow along the line.
            self.waiting.push(self.log.last(), outcome, permit);
        }
    }
}

/// Changes the ledger, with its records going to the log. Once one was not
/// taken, the ledger is not to be believed any more.
fn journaled<T>(log: &mut Log, change: impl FnOnce(&mut Records<'_>) -> T) -> Result<T, TaskError> {
    let mut records = Records { log, lost: None };
    let result = change(&mut records);
    match records.lost {
        None => Ok(result),
        Some(error) => Err(error.into()),
    }
}

/// How many counts each batch tells of.
fn deltas(message: &SyncRequest) -> Vec<u64> {
    let of_batch = |batch: &Batch| {
        batch
            .groups
            .iter()
            .map(|group| group.hits.len() as u64)
            .sum()
    };
    message.batches.iter().map(of_batch).collect()
}

fn resolve(rules: &Arc<RuleSet>, check: &Check) -> Result<Query, Refusal> {
    let found = rules.by_name(&check.rule);
    let Some((place, rule)) = found.and_then(|place| Some((place, rules.rule(place)?))) else {
        return Err(Refusal::UnknownRule {
            rule: check.rule.clone(),
            known: rules.rules().map(|rule| rule.name.clone()).collect(),
        });
    };
    let values: Vec<&[u8]> = check.key.iter().map(String::as_bytes).collect();
    if values.len() != rule.arity() {
        return Err(Refusal::KeyParts {
            rule: check.rule.clone(),
            expected: rule.arity(),
            got: values.len(),
        });
    }
    let key = rules
        .key_of(place, &values)
        .ok_or_else(|| Refusal::KeyValue {
            rule: check.rule.clone(),
        })?;
    let hit = Hit {
        rule: place,
        key,
        cost: check.cost.unwrap_or(rule.cost),
    };
    Ok(Query {
        rules: Arc::clone(rules),
        hits: smallvec![hit],
    })
}

fn refuse(request: Request, why: Refusal) {
    match request {
        Request::Sync(_, answer) => drop(answer.send(Err(why))),
        Request::Check(_, answer) => drop(answer.send(Err(why))),
    }
}
