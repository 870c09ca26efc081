//! What became of one request, in a line: for a response header and an access log, to
//! those who are looking for why.
//!
//! `"per-key";verdict=allow;tier=lease;remaining=41;age_ms=120`: the rule that was
//! decisive, who decided, what is left as far as is known here, and how old that
//! knowledge is. A structured-field item (RFC 9651).

use core::fmt::Write;

use limiter::answer::quoted;
use limiter::decision::{Decision, Verdict};
use limiter::ruleset::RuleSet;
use limiter::time::Micros;

/// Who is told why requests are decided as they are; nobody, by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explain {
    /// The response header that says so.
    pub header: Option<String>,
    /// Whether the access log can say so.
    pub log: bool,
}

impl Explain {
    /// Whether anybody is told.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.header.is_some() || self.log
    }
}

/// The line. `age` is the time since the region's last reply; none before the first.
#[must_use]
pub fn line(rules: &RuleSet, verdict: &Verdict, age: Option<Micros>) -> String {
    let mut line = match verdict {
        Verdict::Allow(decision) if decision.shadowed => decided(rules, decision, "shadow"),
        Verdict::Allow(decision) => decided(rules, decision, "allow"),
        Verdict::Deny(decision) => decided(rules, decision, "deny"),
        Verdict::Pass | Verdict::Hold { .. } => "none;verdict=pass".to_owned(),
    };
    if let Some(age) = age {
        let _ = write!(line, ";age_ms={}", age.get() / 1_000);
    }
    line
}

fn decided(rules: &RuleSet, decision: &Decision, verdict: &str) -> String {
    let name = rules.rule(decision.rule).map_or("", |rule| &rule.name);
    format!(
        "{};verdict={verdict};tier={};remaining={}",
        quoted(name),
        decision.tier.name(),
        decision.remaining
    )
}
