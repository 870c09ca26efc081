//! One instance's source: the [`Limiter`], what it has counted, and requests whose
//! responses matter.

use core::error::Error;
use std::collections::BTreeMap;
use std::sync::Arc;

use limiter::edge::{Answered, Identity, Limiter, Open, ReplyError, Settings};
use limiter::key::RuleId;
use limiter::request::{Hit, Query, Request};
use limiter::rule::HITS_MAX;
use limiter::ruleset::RuleSet;
use limiter::time::Timestamp;
use limiter::wire;
use limiter::{decision::Verdict, key::CounterKey};
use prost::Message;

use super::exports::types::{Answer, Attempt, Counter, Outgoing, Trouble};
use crate::metrics::{Kind, Metrics, Sink};

/// The most requests whose responses are waited for at once. What one more has spent
/// stays so.
const OPEN_MAX: usize = 65_536;

/// Messages handed out in one go: far more than a source ever has due.
const OUTGOING_MAX: usize = 1_000;

/// A source, and what is kept beside it.
pub(super) struct Instance {
    limiter: Limiter,
    metrics: Metrics,
    told: Told,
    open: BTreeMap<u64, Open>,
    ticket: u64,
}

/// Sums since the start, as [`Metrics`] hands them over.
#[derive(Default)]
pub(super) struct Told(Vec<(String, i64)>);

impl Sink for Told {
    fn define(&mut self, _kind: Kind, name: &str) -> Option<u32> {
        let id = u32::try_from(self.0.len()).ok()?;
        self.0.push((name.to_owned(), 0));
        Some(id)
    }

    fn add(&mut self, id: u32, by: i64) {
        let place = usize::try_from(id).unwrap_or(usize::MAX);
        if let Some((_, sum)) = self.0.get_mut(place) {
            *sum = sum.saturating_add(by);
        }
    }
}

impl Instance {
    pub(super) fn new(identity: Identity, settings: Settings) -> Self {
        Self {
            limiter: Limiter::new(identity, settings),
            metrics: Metrics::default(),
            told: Told::default(),
            open: BTreeMap::new(),
            ticket: 0,
        }
    }

    pub(super) const fn rules(&self) -> &Arc<RuleSet> {
        self.limiter.rules()
    }

    pub(super) const fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Puts rules in force that `weir rules compile` has written.
    pub(super) fn set_rules(&mut self, compiled: &[u8]) -> Result<u64, String> {
        let sent = wire::RuleSet::decode(compiled)
            .map_err(|_| "not in the form that `weir rules compile` writes".to_owned())?;
        let rules = RuleSet::read(sent, self.rules().lists());
        let rules = rules.map_err(|error| told(&error))?;
        let revision = rules.revision;
        self.count_rules();
        self.limiter.set_rules(Arc::new(rules));
        Ok(revision)
    }

    /// The counter that these values name.
    pub(super) fn counter_of(&self, rule: &str, values: &[&[u8]]) -> Result<Counter, String> {
        let rules = self.rules();
        let place = rules.for_key(rule, values);
        let place = place.ok_or_else(|| format!("there is no rule {rule:?}"))?;
        let wanted = rules.rule(place).map_or(0, limiter::rule::Rule::arity);
        if wanted != values.len() {
            let got = values.len();
            return Err(format!(
                "the key of rule {rule:?} takes {wanted} values, got {got}"
            ));
        }
        let key = rules.key_of(place, values).zip(rules.id(place));
        let (key, id) =
            key.ok_or_else(|| format!("a value that rule {rule:?} counts per is no address"))?;
        let [high, low] = halves(key.0);
        Ok(Counter {
            rule: id.0,
            high,
            low,
        })
    }

    /// What a check of one counter asks; none if there is no such rule, or nothing to
    /// spend.
    fn query(&self, counter: Counter, cost: u64) -> Option<Query> {
        let rules = self.rules();
        let rule = rules.by_id(RuleId(counter.rule))?;
        let unlimited = rules.rule(rule).is_none_or(|rule| rule.unlimited);
        if cost == 0 || unlimited {
            return None;
        }
        let hit = Hit {
            rule,
            key: CounterKey(u128::from(counter.high) << 64 | u128::from(counter.low)),
            cost: cost.min(HITS_MAX + 1),
        };
        let mut query = Query {
            rules: Arc::clone(rules),
            hits: Default::default(),
        };
        query.hits.push(hit);
        Some(query)
    }

    /// Checks one counter.
    pub(super) fn check_key(
        &mut self,
        counter: Counter,
        cost: u64,
        attempt: Attempt,
        now: Timestamp,
    ) -> Verdict {
        match self.query(counter, cost) {
            Some(query) => self.decide(&query, attempt, now),
            None => Verdict::Pass,
        }
    }

    /// Checks what a request spends.
    pub(super) fn decide(&mut self, query: &Query, attempt: Attempt, now: Timestamp) -> Verdict {
        match attempt {
            Attempt::First => self.limiter.decide(query, now),
            Attempt::Again => self.limiter.decide_held(query, now, false),
            Attempt::Last => self.limiter.decide_held(query, now, true),
        }
    }

    /// What a request spends; none if no rule applies.
    pub(super) fn resolve(&self, request: &impl Request) -> Option<Query> {
        let query = self.rules().resolve(request);
        (!query.hits.is_empty()).then_some(query)
    }

    /// A ticket for an admitted request whose response matters.
    pub(super) fn open(&mut self, query: &Query, now: Timestamp) -> Option<u64> {
        let open = self.limiter.open(query, now)?;
        if self.open.len() >= OPEN_MAX {
            self.metrics.count(crate::source::UNSEEN, 1);
            return None;
        }
        self.ticket = self.ticket.wrapping_add(1);
        self.open.insert(self.ticket, open);
        Some(self.ticket)
    }

    /// Takes in the response to a request; or that there was none.
    pub(super) fn settle(&mut self, ticket: u64, response: Option<&impl Answered>, now: Timestamp) {
        match (self.open.remove(&ticket), response) {
            (Some(open), Some(response)) => self.limiter.close(&open, response, now),
            (Some(_), None) => self.metrics.count(crate::source::UNSEEN, 1),
            (None, _) => {}
        }
    }

    /// The messages that are due.
    pub(super) fn drain(&mut self, now: Timestamp, last: bool) -> Vec<Outgoing> {
        if last {
            self.limiter.flush_now();
        }
        let next = || self.limiter.poll_send(now);
        let messages = core::iter::from_fn(next).take(OUTGOING_MAX);
        let outgoing = |message: limiter::edge::Outgoing| Outgoing {
            id: message.id,
            body: message.body,
        };
        messages.map(outgoing).collect()
    }

    /// Takes in what became of messages.
    pub(super) fn apply(&mut self, answers: Vec<Answer>, now: Timestamp) -> Vec<Trouble> {
        self.count_rules();
        let troubles = answers.into_iter().filter_map(|answer| {
            let id = answer.id;
            let error = self.take(answer, now)?;
            let why = error.to_string();
            Some(Trouble { id, why })
        });
        troubles.collect()
    }

    fn take(&mut self, answer: Answer, now: Timestamp) -> Option<ReplyError> {
        // Nothing is a message, too, in protobuf; but never a reply.
        let Some(body) = answer.body.filter(|body| !body.is_empty()) else {
            self.metrics.count("weir_sync_total;outcome=no_answer", 1);
            self.limiter.handle_no_answer(answer.id, now);
            return None;
        };
        let taken = self.limiter.handle_reply(answer.id, &body, now);
        let name = match &taken {
            Ok(()) => "weir_sync_total;outcome=ok",
            Err(ReplyError::Malformed) => "weir_sync_total;outcome=malformed",
            Err(ReplyError::Rules(_)) => "weir_sync_total;outcome=rules_refused",
        };
        self.metrics.count(name, 1);
        taken.err()
    }

    /// What was counted since the start: names with their labels, and sums.
    pub(super) fn metrics(&mut self, now: Timestamp) -> &[(String, i64)] {
        self.count_rules();
        self.metrics.set_source(self.limiter.stats(now));
        self.metrics.flush(&mut self.told);
        &self.told.0
    }

    /// Counts what the rules have decided, while it is known which they were.
    fn count_rules(&mut self) {
        let stats = self.limiter.take_rule_stats();
        for (rule, stats) in self.limiter.rules().rules().zip(stats) {
            self.metrics.count_rule(rule, stats);
        }
    }
}

/// An error with all that it rests on.
fn told(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said.push_str(": ");
        said.push_str(&error.to_string());
        cause = error.source();
    }
    said
}

#[expect(clippy::cast_possible_truncation, reason = "halves are what is wanted")]
const fn halves(key: u128) -> [u64; 2] {
    [(key >> 64) as u64, key as u64]
}
