//! The second phase of a request: what its response changes of what it has spent, and
//! what its client is told with it.
//!
//! A request is remembered only if a rule it met says so, or if somebody wants to know
//! why requests are decided as they are. Any other has no second phase.

use limiter::answer;
use limiter::decision::{Decision, Verdict};
use limiter::edge::{Answered, Limiter, Open};
use limiter::request::Query;
use limiter::time::Timestamp;

use super::{Effect, Source};
use crate::explain;
use crate::refusal::{Header, Refusal};

/// The most requests that are remembered at once. What one more has spent stays so.
const WAITING_MAX: usize = 65_536;

/// Requests whose response would have changed what they spent, and was not seen.
pub(crate) const UNSEEN: &str = "weir_responses_unseen_total";

/// What is kept of an admitted request until its response comes.
pub(super) struct Waiting {
    open: Option<Open>,
    headers: Vec<Header>,
}

impl Source {
    /// Whether [`Self::handle_response`] has anything to do for a request: if not, no
    /// host needs to look at its response.
    #[must_use]
    pub fn awaits(&self, request: u32) -> bool {
        !self.waiting.is_empty() && self.waiting.contains_key(&request)
    }

    /// The response to an admitted request has come. Returns headers that it is to
    /// have, in place of others of that name.
    pub fn handle_response(
        &mut self,
        request: u32,
        response: &impl Answered,
        now: Timestamp,
    ) -> Vec<Header> {
        let Some(waiting) = self.waiting.remove(&request) else {
            return Vec::new();
        };
        if let Some(open) = &waiting.open {
            self.limiter.close(open, response, now);
        }
        waiting.headers
    }

    /// A request has ended, and its response was never seen: what it has spent stays so.
    pub(super) fn unanswered(&mut self, request: u32) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = self.waiting.remove(&request);
        if waiting.is_some_and(|waiting| waiting.open.is_some()) {
            self.metrics.count(UNSEEN, 1);
        }
    }

    /// A request was decided without a denial.
    pub(super) fn admitted(
        &mut self,
        request: u32,
        query: &Query,
        verdict: &Verdict,
        now: Timestamp,
    ) {
        if !query.rules.sees_responses() && !self.explain.is_on() {
            return;
        }
        let mut headers = Vec::new();
        if let Verdict::Allow(decision) = verdict {
            headers = told(&self.limiter, query, decision, now);
        }
        headers.extend(self.explained(request, verdict, now));
        let open = match verdict {
            Verdict::Allow(_) => self.limiter.open(query, now),
            Verdict::Pass | Verdict::Deny(_) | Verdict::Hold { .. } => None,
        };
        if open.is_none() && headers.is_empty() {
            return;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.metrics.count(UNSEEN, 1);
            return;
        }
        self.waiting.insert(request, Waiting { open, headers });
    }

    /// A request was denied.
    pub(super) fn refused(
        &mut self,
        request: u32,
        decision: &Decision,
        now: Timestamp,
    ) -> Option<Refusal> {
        let rule = self.limiter.rules().rule(decision.rule)?;
        let mut refusal = Refusal::new(rule, decision);
        let explained = self.explained(request, &Verdict::Deny(*decision), now);
        refusal.headers.extend(explained);
        Some(refusal)
    }

    /// No rule applied to a request.
    pub(super) fn passed(&mut self, request: u32, now: impl FnOnce() -> Timestamp) {
        if self.explain.is_on() {
            let header = self.explained(request, &Verdict::Pass, now());
            if let Some(header) = header.filter(|_| self.waiting.len() < WAITING_MAX) {
                let (open, headers) = (None, vec![header]);
                self.waiting.insert(request, Waiting { open, headers });
            }
        }
    }

    /// Has the access log say why, and returns the header that does.
    fn explained(&mut self, request: u32, verdict: &Verdict, now: Timestamp) -> Option<Header> {
        if !self.explain.is_on() {
            return None;
        }
        let line = explain::line(
            self.limiter.rules(),
            verdict,
            self.limiter.stats(now).last_reply_ago,
        );
        if self.explain.log {
            let line = line.clone();
            self.effects.push_back(Effect::Explain { request, line });
        }
        let name = self.explain.header.clone()?;
        Some((name.into(), line))
    }
}

/// Tells an allowed client of its quota: of the rule with the least left, among those
/// that want it told.
pub(crate) fn told(
    limiter: &Limiter,
    query: &Query,
    decision: &Decision,
    now: Timestamp,
) -> Vec<Header> {
    let mut headers = Vec::new();
    let wants = |decision: &Decision| {
        let rule = limiter.rules().rule(decision.rule)?;
        rule.quota_headers.on_allowed().then_some(rule)
    };
    let mut decision = Some(*decision).filter(|one| wants(one).is_some());
    if decision.is_none() && query.rules.sees_responses() {
        let hits = query.hits.iter();
        let each = hits.filter_map(|hit| limiter.standing(query, hit, now));
        let wanted = each.filter(|one| wants(one).is_some());
        decision = wanted.min_by_key(|one| one.remaining);
    }
    if let Some(decision) = decision
        && let Some(rule) = wants(&decision)
    {
        answer::allowed(rule, &decision, &mut |name, value| {
            headers.push((name.into(), value));
        });
    }
    headers
}
