//! Why rules do not make a set.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::{PROXIES_MAX, RULES_MAX, compiled::Compiled, test::Test};
use crate::{
    address::Cidr,
    list::{LISTED_MAX, LISTS_MAX, List},
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
    /// There are too many lists.
    #[error("at most {LISTS_MAX} lists, got {0}")]
    TooManyLists(usize),
    /// There is too much in them.
    #[error("at most {LISTED_MAX} values in all lists together, got {0}")]
    TooMuchListed(usize),
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

/// The lists that these rules look at, each once, in the order of their identities.
pub(super) fn check_lists(rules: &[Compiled]) -> Result<Vec<Arc<List>>, RuleSetError> {
    let mut lists: Vec<&Arc<List>> = rules.iter().flat_map(|rule| rule.rule.lists()).collect();
    lists.sort_unstable_by_key(|list| list.id());
    lists.dedup();
    let listed = lists.iter().map(|list| list.len()).sum();
    match (lists.len(), listed) {
        (count, _) if count > LISTS_MAX => Err(RuleSetError::TooManyLists(count)),
        (_, listed) if listed > LISTED_MAX => Err(RuleSetError::TooMuchListed(listed)),
        _ => Ok(lists.into_iter().cloned().collect()),
    }
}

/// Checks a rule that is to stand at this place, and readies its conditions.
pub(super) fn check_rule(place: usize, rule: &Rule) -> Result<Vec<Test>, RuleSetError> {
    let listed = rule.listed_part();
    let tests = || -> Result<Vec<_>, _> {
        let conditions = rule.all_conditions();
        conditions.map(|one| Test::new(one, listed)).collect()
    };
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
