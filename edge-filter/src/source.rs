//! One deciding memory: requests, replies and ticks go in, effects come out.
//!
//! A host's adapter calls `handle_*` and then carries out what [`Source::poll`]
//! gives it until there is nothing more. No call is made from in here, so no
//! host can call back into a source that is busy.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use limiter::decision::Verdict;
use limiter::edge::{Identity, Limiter, ReplyError, Settings};
use limiter::request::Query;
use limiter::ruleset::RuleSet;
use limiter::time::{Micros, Timestamp};

use crate::explain::Explain;
use crate::metrics::{Metrics, Sink};
use crate::request::{Host, HostRequest, Wants};

mod effect;
mod response;
#[cfg(test)]
mod tests;

pub use effect::{Effect, Outcome};
use response::Waiting;
#[cfg(all(feature = "component", target_arch = "wasm32"))]
pub(crate) use response::{UNSEEN, told};

/// The most requests that wait at once; one more is decided without waiting.
const HELD_MAX: usize = 4_096;

/// How long past its own timeout a call is taken to be under way: a host may end
/// one without a word, when what it was called from ends.
const CALL_GRACE: Micros = Micros::from_secs(1);

/// One deciding memory.
pub struct Source {
    limiter: Limiter,
    wants: Wants,
    wants_of: Arc<RuleSet>,
    held: Vec<Held>,
    calls: Vec<Call>,
    effects: VecDeque<Effect>,
    metrics: Metrics,
    away: bool,
    explain: Explain,
    /// Admitted requests whose responses matter.
    waiting: BTreeMap<u32, Waiting>,
}

/// A request that waits.
struct Held {
    request: u32,
    query: Query,
    until: Timestamp,
}

/// A message under way.
struct Call {
    token: u32,
    id: u64,
    overdue_at: Timestamp,
}

impl Source {
    /// A source that knows no rules yet, and passes everything until it does.
    #[must_use]
    pub fn new(identity: Identity, settings: Settings) -> Self {
        Self {
            limiter: Limiter::new(identity, settings),
            wants: Wants::default(),
            wants_of: Arc::default(),
            held: Vec::new(),
            calls: Vec::new(),
            effects: VecDeque::new(),
            metrics: Metrics::default(),
            away: false,
            explain: Explain::default(),
            waiting: BTreeMap::new(),
        }
    }

    /// Tells these from now on why requests are decided as they are.
    pub fn set_explain(&mut self, explain: Explain) {
        self.explain = explain;
    }

    /// A request has arrived. `request` is the host's number for it.
    pub fn handle_request(&mut self, request: u32, host: &impl Host) -> Outcome {
        let Some(query) = self.resolve(host) else {
            self.passed(request, || host.now());
            return Outcome::Pass;
        };
        let now = host.now();
        match self.decide(&query, now) {
            verdict @ (Verdict::Pass | Verdict::Allow(_)) => {
                self.admitted(request, &query, &verdict, now);
                Outcome::Pass
            }
            Verdict::Deny(decision) => self
                .refused(request, &decision, now)
                .map_or(Outcome::Pass, Outcome::Refuse),
            Verdict::Hold { until } => {
                self.held.push(Held {
                    request,
                    query,
                    until,
                });
                Outcome::Hold
            }
        }
    }

    /// A message is on its way under the host's `token`, and its answer comes
    /// within `timeout`; or the host could not send it.
    pub fn handle_sent(&mut self, id: u64, token: Option<u32>, timeout: Micros, now: Timestamp) {
        match token {
            Some(token) => {
                let overdue_at = now.after(timeout).after(CALL_GRACE);
                self.calls.push(Call {
                    token,
                    id,
                    overdue_at,
                });
            }
            None => self.no_answer(id, now),
        }
    }

    /// The call with this token has ended, with an answer of 200 or without.
    pub fn handle_answer(&mut self, token: u32, body: Option<&[u8]>, now: Timestamp) {
        let Some(at) = self.calls.iter().position(|call| call.token == token) else {
            return;
        };
        let id = self.calls.swap_remove(at).id;
        // Nothing is a message, too, in protobuf; but never a reply.
        match body.filter(|body| !body.is_empty()) {
            Some(body) => self.reply(id, body, now),
            None => self.no_answer(id, now),
        }
        self.decide_held(now);
    }

    /// Time has passed.
    pub fn handle_tick(&mut self, now: Timestamp) {
        while let Some(at) = self.calls.iter().position(|call| call.overdue_at <= now) {
            let id = self.calls.swap_remove(at).id;
            self.no_answer(id, now);
        }
        if self.held.iter().any(|held| held.until <= now) {
            self.decide_held(now);
        }
    }

    /// A request has ended, whatever became of it.
    pub fn forget(&mut self, request: u32) {
        self.held.retain(|held| held.request != request);
        self.unanswered(request);
    }

    /// The source is about to end: all it counted is due at once.
    pub fn finish(&mut self) {
        self.limiter.flush_now();
        self.metrics.retire();
    }

    /// What the host is to do next.
    pub fn poll(&mut self, now: Timestamp) -> Option<Effect> {
        self.effects.pop_front().or_else(|| {
            let message = self.limiter.poll_send(now)?;
            Some(Effect::Send {
                id: message.id,
                body: message.body,
            })
        })
    }

    /// Whether requests are waiting, and a tick should come within milliseconds.
    #[must_use]
    pub const fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether answers are still to come.
    #[must_use]
    pub const fn is_calling(&self) -> bool {
        !self.calls.is_empty()
    }

    /// When [`Self::handle_tick`] and [`Self::poll`] want to be called at the
    /// latest.
    #[must_use]
    pub fn due(&self) -> Timestamp {
        let held = self.held.iter().map(|held| held.until);
        held.fold(self.limiter.poll_timeout(), Timestamp::min)
    }

    /// Puts rules in force that came with the source itself, not from a region.
    pub fn set_rules(&mut self, rules: Arc<RuleSet>) {
        self.count_rules();
        self.limiter.set_rules(rules);
    }

    /// The rules in force.
    #[must_use]
    pub const fn rules(&self) -> &Arc<RuleSet> {
        self.limiter.rules()
    }

    /// Hands the metrics over to the host, and notes when the region goes or
    /// comes back.
    pub fn report(&mut self, sink: &mut impl Sink, now: Timestamp) {
        self.count_rules();
        let stats = self.limiter.stats(now);
        self.metrics.set_source(stats);
        self.metrics.flush(sink);
        if stats.away != self.away {
            self.away = stats.away;
            self.effects.push_back(if stats.away {
                Effect::Warn("the aggregator does not answer: limits hold per worker".to_owned())
            } else {
                Effect::Inform("the aggregator answers again".to_owned())
            });
        }
    }

    /// What the request spends; none if no rule applies.
    fn resolve(&mut self, host: &impl Host) -> Option<Query> {
        let rules = self.limiter.rules();
        if rules.is_empty() {
            return None;
        }
        if !Arc::ptr_eq(rules, &self.wants_of) {
            self.wants = Wants::of(rules);
            self.wants_of = Arc::clone(rules);
        }
        let query = rules.resolve(&HostRequest::new(host, rules, &self.wants));
        (!query.hits.is_empty()).then_some(query)
    }

    fn decide(&mut self, query: &Query, now: Timestamp) -> Verdict {
        match self.limiter.decide(query, now) {
            Verdict::Hold { .. } if self.held.len() >= HELD_MAX => {
                self.limiter.decide_held(query, now, true)
            }
            verdict => verdict,
        }
    }

    /// Decides every held request anew, those out of patience for good.
    fn decide_held(&mut self, now: Timestamp) {
        for held in core::mem::take(&mut self.held) {
            let give_up = held.until <= now;
            let request = held.request;
            match self.limiter.decide_held(&held.query, now, give_up) {
                Verdict::Hold { .. } if !give_up => self.held.push(held),
                Verdict::Deny(decision) => {
                    let refusal = self.refused(request, &decision, now);
                    self.effects
                        .push_back(refusal.map_or(Effect::Resume { request }, |refusal| {
                            Effect::Refuse { request, refusal }
                        }));
                }
                verdict => {
                    self.admitted(request, &held.query, &verdict, now);
                    self.effects.push_back(Effect::Resume { request });
                }
            }
        }
    }

    fn reply(&mut self, id: u64, body: &[u8], now: Timestamp) {
        self.count_rules();
        let revision = self.limiter.rules().revision;
        let outcome = self.limiter.handle_reply(id, body, now);
        let name = match &outcome {
            Ok(()) => "weir_sync_total;outcome=ok",
            Err(ReplyError::Malformed) => "weir_sync_total;outcome=malformed",
            Err(ReplyError::Rules(_)) => "weir_sync_total;outcome=rules_refused",
        };
        self.metrics.count(name, 1);
        match outcome {
            Ok(()) => self.note_rules(revision),
            Err(error) => self.effects.push_back(Effect::Warn(error.to_string())),
        }
    }

    fn note_rules(&mut self, before: u64) {
        let rules = self.limiter.rules();
        if rules.revision != before {
            let line = format!(
                "rules in force: {}, revision {}",
                rules.len(),
                rules.revision
            );
            self.effects.push_back(Effect::Inform(line));
        }
    }

    fn no_answer(&mut self, id: u64, now: Timestamp) {
        self.metrics.count("weir_sync_total;outcome=no_answer", 1);
        self.limiter.handle_no_answer(id, now);
    }

    /// Counts what the rules have decided, while it is known which they were.
    fn count_rules(&mut self) {
        let stats = self.limiter.take_rule_stats();
        for (rule, stats) in self.limiter.rules().rules().zip(stats) {
            self.metrics.count_rule(rule, stats);
        }
    }
}
