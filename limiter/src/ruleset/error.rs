//! Why rules do not make a set.

use alloc::{string::String, vec::Vec};

use super::{PROXIES_MAX, RULES_MAX, compiled::Compiled, test::Test};
use crate::{
    address::Cidr,
    rule::{Rule, RuleError, text, text::TextError},
};

/// Why rules do not make a set. None of them is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleSetError {
    /// The domain cannot be named like this.
    #[error("the domain cannot be named like this")]
    Domain(#[source] TextError),
    /// There are too many rules.
    #[error("at most {RULES_MAX} rules, got {0}")]
    TooManyRules(usize),
    /// There are too many trusted proxies.
    #[error("at most {PROXIES_MAX} trusted proxies, got {0}")]
    TooManyProxies(usize),
    /// A rule cannot be enforced.
    #[error("rule {place} ({name}) cannot be enforced")]
    Rule {
        /// Its place, from 0.
        place: usize,
        /// What it is called.
        name: String,
        /// Why.
        #[source]
        source: RuleError,
    },
    /// Two rules have one name.
    #[error("two rules are called {0}")]
    SameName(String),
    /// Two names hash alike: one of the rules must be called something else.
    #[error("rules {0} and {1} would be taken for one another; rename one of them")]
    SameId(String, String),
}

pub(super) fn check_sizes(
    domain: &str,
    proxies: &[Cidr],
    rules: &[Rule],
) -> Result<(), RuleSetError> {
    if !domain.is_empty() {
        text::name(domain).map_err(RuleSetError::Domain)?;
    }
    if proxies.len() > PROXIES_MAX {
        return Err(RuleSetError::TooManyProxies(proxies.len()));
    }
    if rules.len() > RULES_MAX {
        return Err(RuleSetError::TooManyRules(rules.len()));
    }
    Ok(())
}

/// Checks a rule that is to stand at this place, and readies its conditions.
pub(super) fn check_rule(place: usize, rule: &Rule) -> Result<Vec<Test>, RuleSetError> {
    let tests = || -> Result<Vec<_>, _> { rule.all_conditions().map(Test::new).collect() };
    let checked = rule.validate();
    checked
        .and_then(|()| tests().map_err(RuleError::Condition))
        .map_err(|source| broken(place, rule, source))
}

fn broken(place: usize, rule: &Rule, source: RuleError) -> RuleSetError {
    RuleSetError::Rule {
        place,
        name: rule.identity().into_owned(),
        source,
    }
}

/// Names an earlier rule whose identity a later one has, too.
pub(super) fn same_id(other: usize, rules: &[Compiled], rule: &Compiled) -> RuleSetError {
    let name = rule.rule.identity().into_owned();
    let other = rules.get(other).map(|other| other.rule.identity());
    match other {
        Some(other) if *other != *name => RuleSetError::SameId(other.into_owned(), name),
        _ => RuleSetError::SameName(name),
    }
}
