//! Rules as they travel.
//!
//! A rule that says something this release does not know, because the region
//! is newer, is kept by name and applies to nothing: it is never widened by
//! leaving out what was not understood, and the rules beside it are enforced.
//! Something that no release would say refuses the set whole. A region that
//! passes rules on should pass on the bytes it got, not write them anew.

use alloc::{string::String, sync::Arc, vec::Vec};

use crate::{
    address::{Cidr, CidrError},
    key::HashSeed,
    list::List,
    rule::Rule,
    ruleset::{RULES_MAX, RuleSet, RuleSetError},
};

mod codes;
mod features;
mod lists;
mod read;
#[cfg(test)]
mod tests;
mod write;

use lists::Lists;

/// Why a message holds no set of rules. None of them is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// A trusted proxy is no block of addresses.
    #[error("trusted proxy {text} is no block of addresses")]
    Proxy {
        /// What was sent.
        text: String,
        /// Why.
        #[source]
        source: CidrError,
    },
    /// The seed has another length.
    #[error("a seed has 16 bytes or none, got {0}")]
    Seed(usize),
    /// A list cannot be read.
    #[error("list {0} cannot be read: 16 bytes of seed, and 8 for each value")]
    List(String),
    /// A list was left out, and nobody has it.
    #[error("list {0} was left out, and is not known")]
    ListLeftOut(String),
    /// A field of a rule holds what none could.
    #[error("rule {place} ({name}) cannot be read")]
    Rule {
        /// Its place, from 0.
        place: usize,
        /// What it is called.
        name: String,
        /// Why.
        #[source]
        source: FieldError,
    },
    /// The rules make no set.
    #[error("the rules make no set")]
    Set(#[from] RuleSetError),
}

/// Why a field of a rule cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The field must not be zero.
    #[error("{0} is zero")]
    Zero(&'static str),
    /// The field's value is out of range.
    #[error("{field} is {got}, which is out of range")]
    Range {
        /// The field.
        field: &'static str,
        /// What was sent.
        got: u32,
    },
    /// A list that is not there.
    #[error("there is no list {0:016x}")]
    List(u64),
    /// The name does not end in the tier.
    #[error("the name does not end in @{0}, its tier")]
    Tier(String),
    /// An address block cannot be read.
    #[error("{0} is no block of addresses")]
    Address(String),
}

/// Why a rule does not come out as it was meant.
enum Trouble {
    /// A newer release would know.
    Unknown,
    Broken(FieldError),
}

impl From<FieldError> for Trouble {
    fn from(error: FieldError) -> Self {
        Self::Broken(error)
    }
}

impl TryFrom<super::RuleSet> for RuleSet {
    type Error = RulesError;

    fn try_from(sent: super::RuleSet) -> Result<Self, RulesError> {
        Self::read(sent, &[])
    }
}

impl RuleSet {
    /// Reads a message by one who knows these lists, and said so.
    pub fn read(sent: super::RuleSet, known: &[Arc<List>]) -> Result<Self, RulesError> {
        if sent.rules.len() > RULES_MAX {
            return Err(RuleSetError::TooManyRules(sent.rules.len()).into());
        }
        let proxies: Result<Vec<_>, _> = sent.trusted_proxies.into_iter().map(proxy).collect();
        let lists = Lists::read(sent.lists, known)?;
        let rules = sent.rules.into_iter().enumerate();
        let rules = rules.map(|(place, rule)| read(place, rule, &lists));
        let rules: Result<Vec<_>, _> = rules.collect();
        let seed = seed(&sent.seed)?;
        let set = Self::new(sent.domain, sent.revision, proxies?, seed, rules?)?;
        Ok(set)
    }
}

fn proxy(text: String) -> Result<Cidr, RulesError> {
    text.parse()
        .map_err(|source| RulesError::Proxy { text, source })
}

fn seed(bytes: &[u8]) -> Result<HashSeed, RulesError> {
    match bytes {
        [] => Ok(HashSeed::default()),
        bytes => bytes
            .try_into()
            .map(HashSeed)
            .map_err(|_| RulesError::Seed(bytes.len())),
    }
}

fn read(place: usize, sent: super::Rule, lists: &Lists) -> Result<Rule, RulesError> {
    match read::rule(&sent, lists) {
        Ok(rule) => Ok(rule),
        Err(Trouble::Unknown) => Ok(Rule::unsupported(sent.name)),
        Err(Trouble::Broken(source)) => Err(RulesError::Rule {
            place,
            name: sent.name,
            source,
        }),
    }
}
