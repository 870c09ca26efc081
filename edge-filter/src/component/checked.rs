//! What a decision comes to: packed into a number, or in full.

use limiter::decision::{Decision, Tier, Verdict};
use limiter::request::Query;
use limiter::time::{Micros, Timestamp};

use super::exports::types;
use super::instance::Instance;
use crate::refusal::{Header, Refusal};
use crate::source::told;

/// The longest wait that a packed answer has; what is as long or longer is "never".
const WAIT_MAX: u64 = u64::MAX >> 2;

/// A verdict as `check-key` answers it: two bits, and 62 of a wait in microseconds.
pub(super) fn packed(verdict: &Verdict, now: Timestamp) -> u64 {
    let (code, wait) = match verdict {
        Verdict::Pass => (0, 0),
        Verdict::Allow(_) => (1, 0),
        Verdict::Deny(decision) => (2, decision.retry_after.map_or(WAIT_MAX, Micros::get)),
        Verdict::Hold { until } => (3, until.since(now).get()),
    };
    wait.min(WAIT_MAX) << 2 | code
}

impl Instance {
    /// A decision in full, and what comes with it.
    pub(super) fn checked(
        &mut self,
        query: &Query,
        verdict: &Verdict,
        now: Timestamp,
    ) -> types::Decision {
        match verdict {
            Verdict::Pass => passed(),
            Verdict::Hold { until } => types::Decision {
                verdict: types::Verdict::Hold,
                wait: Some(until.since(now).get()),
                ..passed()
            },
            Verdict::Allow(decision) => types::Decision {
                headers: plain(told(self.limiter(), query, decision, now)),
                ticket: self.open(query, now),
                ..self.numbers(types::Verdict::Allow, decision)
            },
            Verdict::Deny(decision) => types::Decision {
                wait: decision.retry_after.map(Micros::get),
                refusal: self.refusal(decision),
                ..self.numbers(types::Verdict::Deny, decision)
            },
        }
    }

    fn numbers(&self, verdict: types::Verdict, decision: &Decision) -> types::Decision {
        let rule = self.rules().rule(decision.rule);
        types::Decision {
            verdict,
            rule: rule.map(|rule| rule.name.clone()).unwrap_or_default(),
            tier: tier(decision.tier),
            limit: decision.limit,
            remaining: decision.remaining,
            reset_after: decision.reset_after.get(),
            shadowed: decision.shadowed,
            ..passed()
        }
    }

    fn refusal(&self, decision: &Decision) -> Option<types::Refusal> {
        let refusal = Refusal::new(self.rules().rule(decision.rule)?, decision);
        Some(types::Refusal {
            status: refusal.status,
            headers: plain(refusal.headers),
            body: refusal.body,
        })
    }
}

/// What is said of a request that no rule applies to.
pub(super) const fn passed() -> types::Decision {
    types::Decision {
        verdict: types::Verdict::Pass,
        rule: String::new(),
        tier: types::Tier::Local,
        limit: 0,
        remaining: 0,
        reset_after: 0,
        wait: None,
        shadowed: false,
        headers: Vec::new(),
        refusal: None,
        ticket: None,
    }
}

const fn tier(tier: Tier) -> types::Tier {
    match tier {
        Tier::Local => types::Tier::Local,
        Tier::Lease => types::Tier::Lease,
        Tier::Credit => types::Tier::Credit,
        Tier::Debt => types::Tier::Debt,
        Tier::Fallback => types::Tier::Fallback,
        Tier::Region => types::Tier::Region,
    }
}

fn plain(headers: Vec<Header>) -> Vec<(String, String)> {
    let plain = headers.into_iter();
    plain
        .map(|(name, value)| (name.into_owned(), value))
        .collect()
}
