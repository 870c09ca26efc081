//! Rules: put in force with their text, and told with their history.

use std::sync::Arc;

use limiter::ruleset::RuleSet;

use super::{
    Task, TaskError,
    books::{Books, Owner, journaled},
    rule_book::{Origin, Revision},
    work::{Answer, Refusal},
};
use crate::{rules::RuleText, serve::health::Health};

/// Rules that are to be in force.
pub(in crate::serve) struct RuleChange {
    /// The revision that this is meant to follow: in force, or nothing changes.
    pub(in crate::serve) after: u64,
    /// Without a revision; the ledger numbers them.
    pub(in crate::serve) rules: RuleSet,
    pub(in crate::serve) text: RuleText,
    pub(in crate::serve) by: Option<String>,
    pub(in crate::serve) origin: Origin,
    pub(in crate::serve) summary: String,
}

/// The rules in force, and how they came to be.
pub(in crate::serve) struct RulesOnRecord {
    pub(in crate::serve) rules: Arc<RuleSet>,
    /// The latest first.
    pub(in crate::serve) revisions: Vec<Arc<Revision>>,
}

impl Task {
    /// Puts rules in force under the next revision, unless they and their text are
    /// those that are. Rules whose text is not on record keep their revision.
    pub(super) fn set_rules(
        &mut self,
        change: RuleChange,
        answer: Answer<u64>,
    ) -> Result<(), TaskError> {
        if let Some(why) = self.commits.obstacle() {
            drop(answer.send(Err(why)));
            return Ok(());
        }
        let in_force = Arc::clone(self.books.ledger.rules());
        let revision = in_force.revision;
        if change.after != revision {
            drop(answer.send(Err(Refusal::RulesMoved { revision })));
            return Ok(());
        }
        let mut rules = change.rules.clone();
        rules.revision = revision;
        let same = revision > 0 && rules == *in_force;
        let text = self.books.rule_book.text(revision);
        match text.map(|text| *text == change.text) {
            Some(true) if same => {}
            None if same => self.enter(revision, change)?,
            _ => {
                rules.revision = revision.saturating_add(1);
                self.enter(rules.revision, change)?;
                self.enforce(rules)?;
            }
        }
        let revision = self.books.ledger.rules().revision;
        self.answer(self.rules_at, revision, answer, None);
        Ok(())
    }

    /// Puts the text of rules on record.
    fn enter(&mut self, number: u64, change: RuleChange) -> Result<(), TaskError> {
        self.metrics.count_rule_change(change.origin);
        let revision = Revision {
            number,
            at: self.clock.now(),
            by: change.by,
            origin: change.origin,
            summary: change.summary,
            bytes: change.text.len() as u64,
            text: Some(change.text),
        };
        let Books { rule_book, .. } = &mut self.books;
        journaled(&mut self.log, Owner::RuleBook, |records| {
            rule_book.enter(revision, records);
        })?;
        self.rules_at = self.log.last();
        Ok(())
    }

    fn enforce(&mut self, rules: RuleSet) -> Result<(), TaskError> {
        self.put(Arc::new(rules))
    }

    fn put(&mut self, rules: Arc<RuleSet>) -> Result<(), TaskError> {
        let now = self.clock.now();
        let ledger = &mut self.books.ledger;
        journaled(&mut self.log, Owner::Ledger, |records| {
            ledger.set_rules(rules, now, records);
        })?;
        self.rules_at = self.log.last();
        self.report_serving();
        Ok(())
    }

    /// Puts rules in force that were numbered elsewhere, if they are newer.
    pub(super) fn adopt(&mut self, rules: Arc<RuleSet>) -> Result<(), TaskError> {
        let newer = rules.revision > self.books.ledger.rules().revision;
        match newer && self.commits.obstacle().is_none() {
            true => self.put(rules),
            // With the store away it is told again, as long as it is newer.
            false => Ok(()),
        }
    }

    /// Tells the rules in force, as soon as they are durable. With the disk full
    /// nobody waits for that.
    pub(super) fn read_rules(&mut self, answer: Answer<RulesOnRecord>) {
        let told = RulesOnRecord {
            rules: Arc::clone(self.books.ledger.rules()),
            revisions: self.books.rule_book.revisions(),
        };
        match self.commits.obstacle() {
            Some(why) if !self.is_durable(self.rules_at) => drop(answer.send(Err(why))),
            _ => self.answer(self.rules_at, told, answer, None),
        }
    }

    pub(super) fn report_serving(&self) {
        let rules_revision = self.books.ledger.rules().revision;
        self.health.set(Health::Serving { rules_revision });
    }
}
