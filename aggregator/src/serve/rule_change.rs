//! A change of rules: read whole, compared with what is in force, and put in its place.
//!
//! A rule file and a client of the API both come this way. What is compared is what
//! is replaced: if others change the rules in between, it is compared again.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use limiter::{
    key::HashSeed,
    ruleset::{RuleSet, RuleSetError},
    wire,
};
use prost::Message;

use super::task::{LedgerHandle, Origin, Refusal, RuleChange};
use crate::rules::{Difference, Problems, RuleFile, RuleText};

/// The most that a set may take as sources are told it, in bytes.
///
/// A filter takes an answer of 8 MiB; what goes with the rules is little.
const WIRE_BYTES_MAX: usize = (8 << 20) - (64 << 10);

/// How often it is compared again before the change is given up.
const TRIES_MAX: usize = 16;

/// A rule file in which nothing is wrong.
pub(super) struct Proposal {
    text: RuleText,
    file: RuleFile,
    rules: RuleSet,
}

/// Why a rule file is not one that can be put in force.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// It does not say what a rule file says: one line for each thing wrong.
    #[error(transparent)]
    Wrong(#[from] Problems),
    /// What it says does not make a set.
    #[error(transparent)]
    Set(#[from] RuleSetError),
    /// Sources would have to be told too much.
    #[error("the rules take {bytes} bytes as sources are told them; {bytes_max} is the most")]
    TooLarge {
        /// What they take.
        bytes: usize,
        /// What they may take.
        bytes_max: usize,
    },
}

/// Who changes the rules, and how.
#[derive(Clone)]
pub(super) struct Author {
    /// What their token is called.
    pub(super) by: Option<String>,
    pub(super) origin: Origin,
}

/// What became of a change, or would.
pub(super) struct Outcome {
    /// In force now.
    pub(super) revision: u64,
    /// Whether it differs from what was in force.
    pub(super) changed: bool,
    pub(super) difference: Difference,
}

impl Proposal {
    /// Reads the text of a file, which messages call `name`.
    pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Self, ProposalError> {
        Self::of(RuleFile::parse(name, bytes)?, bytes)
    }

    /// Reads the text of the file at `path` with the lists that it names, and says
    /// which files these are.
    pub(super) fn read_at(
        path: &Path,
        bytes: &[u8],
    ) -> (Result<Self, ProposalError>, Vec<PathBuf>) {
        let (read, lists) = RuleFile::parse_at(path, bytes);
        let read = read.map_err(ProposalError::from);
        (read.and_then(|file| Self::of(file, bytes)), lists)
    }

    fn of(file: RuleFile, bytes: &[u8]) -> Result<Self, ProposalError> {
        // The ledger numbers them.
        let rules = file.clone().into_rule_set(0, HashSeed::default())?;
        fits(&rules, WIRE_BYTES_MAX)?;
        // What was read is UTF-8.
        let text = RuleText::new(&String::from_utf8_lossy(bytes));
        Ok(Self { text, file, rules })
    }

    /// How it differs from what is in force.
    fn compare(&self, in_force: &RuleSet) -> Difference {
        let mut before = RuleFile::of(in_force);
        if in_force.revision == 0 {
            before.domain.clone_from(&self.file.domain);
        }
        Difference::between(&before, &self.file)
    }
}

/// Whether sources can be told the rules, and the log takes their record.
fn fits(rules: &RuleSet, bytes_max: usize) -> Result<(), ProposalError> {
    match wire::RuleSet::from(rules).encoded_len() {
        bytes if bytes > bytes_max => Err(ProposalError::TooLarge { bytes, bytes_max }),
        _ => Ok(()),
    }
}

/// Puts rules in force; or, for a dry run, says what that would change. `accept`
/// says of the revision in force whether it may be replaced.
pub(super) async fn change<E: From<Refusal>>(
    ledger: &LedgerHandle,
    proposal: &Arc<Proposal>,
    author: &Author,
    dry_run: bool,
    accept: impl Fn(u64) -> Result<(), E>,
) -> Result<Outcome, E> {
    let mut moved = 0;
    for _ in 0..TRIES_MAX {
        let on_record = ledger.rules().await?;
        let after = on_record.rules.revision;
        accept(after)?;
        let latest = on_record.revisions.first();
        let same_text = latest.is_some_and(|latest| {
            latest.number == after && latest.text.as_ref() == Some(&proposal.text)
        });
        let difference = compare(proposal, &on_record.rules).await?;
        if dry_run {
            return Ok(Outcome {
                revision: after,
                changed: !same_text,
                difference,
            });
        }
        let change = RuleChange {
            after,
            rules: proposal.rules.clone(),
            text: proposal.text.clone(),
            by: author.by.clone(),
            origin: author.origin,
            summary: difference.summary(),
        };
        match ledger.set_rules(change).await {
            Ok(revision) => {
                return Ok(Outcome {
                    revision,
                    changed: revision != after,
                    difference,
                });
            }
            Err(Refusal::RulesMoved { revision }) => moved = revision,
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Err(Refusal::RulesMoved { revision: moved }.into())
}

/// Many rules take a while to compare: elsewhere, so that nobody else waits.
async fn compare(proposal: &Arc<Proposal>, in_force: &Arc<RuleSet>) -> Result<Difference, Refusal> {
    let (proposal, in_force) = (Arc::clone(proposal), Arc::clone(in_force));
    let compared = tokio::task::spawn_blocking(move || proposal.compare(&in_force)).await;
    compared.map_err(|error| Refusal::Unready(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_sources_cannot_be_told_are_refused_with_what_they_take() {
        let text = "version: 1\ndomain: d\nrules: [{name: r, limit: 1, window: 1s}]";
        let rules = Proposal::read("rules", text.as_bytes()).unwrap().rules;
        let bytes = wire::RuleSet::from(&rules).encoded_len();
        assert!(fits(&rules, bytes).is_ok());
        let refused = fits(&rules, bytes - 1).unwrap_err().to_string();
        let most = bytes - 1;
        assert!(refused.contains(&format!("{bytes} bytes")) && refused.contains(&most.to_string()));
    }
}
