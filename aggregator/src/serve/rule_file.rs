//! The rule file: read at start, and again whenever it changes.
//!
//! A file that fails is refused whole, and the rules before it stay in force. A
//! change is at every source with its next flush: well within 2 s.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    metrics::Metrics,
    rule_change::{Author, Proposal, ProposalError, change},
    task::{LedgerHandle, Origin, Refusal},
    watched::{LOOK_EVERY, Watch},
};
use crate::{chain::chain, config::RulesFrom, rules::FILE_LEN_MAX};

/// A rule file on disk.
#[derive(Clone, Debug)]
pub(super) struct RuleSource {
    path: PathBuf,
    from: RulesFrom,
}

/// Why a rule file has no rules for us.
#[derive(Debug, thiserror::Error)]
pub enum RuleSourceError {
    /// It is not there, or cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It holds no rules that can be put in force.
    #[error(transparent)]
    Proposal(#[from] ProposalError),
}

impl RuleSource {
    pub(super) const fn new(path: PathBuf, from: RulesFrom) -> Self {
        Self { path, from }
    }

    /// Its path, if it alone says what the rules are.
    pub(super) fn whose_word_counts(&self) -> Option<PathBuf> {
        (self.from == RulesFrom::File).then(|| self.path.clone())
    }

    /// The rules in it.
    pub(super) fn load(&self) -> Result<(Vec<u8>, Proposal), RuleSourceError> {
        let bytes = self.read()?;
        let proposal = self.parse(&bytes)?;
        Ok((bytes, proposal))
    }

    fn read(&self) -> Result<Vec<u8>, RuleSourceError> {
        read_bounded(&self.path).map_err(|source| RuleSourceError::Read {
            path: self.path.clone(),
            source,
        })
    }

    fn parse(&self, bytes: &[u8]) -> Result<Proposal, RuleSourceError> {
        let name = self.path.display().to_string();
        Ok(Proposal::read(&name, bytes)?)
    }

    /// Puts the rules read at start in force, then looks at the file for ever. If
    /// it is for a start without rules only, that is all.
    pub(super) async fn keep_in_force(
        self,
        bytes: Vec<u8>,
        proposal: Proposal,
        ledger: LedgerHandle,
        metrics: Arc<Metrics>,
    ) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        let proposal = Arc::new(proposal);
        while !self.put_in_force(&proposal, &ledger).await {
            looks.tick().await;
        }
        if self.from == RulesFrom::Api {
            return;
        }
        let mut watch = Watch::new(bytes);
        loop {
            looks.tick().await;
            let bytes = match watch.look(self.read()) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(error) => {
                    refused(&error, &metrics);
                    continue;
                }
            };
            let settled = match self.parse(bytes) {
                Ok(proposal) => self.put_in_force(&Arc::new(proposal), &ledger).await,
                Err(error) => {
                    refused(&error, &metrics);
                    true
                }
            };
            if settled {
                watch.settle();
            }
        }
    }

    /// Whether it is settled.
    async fn put_in_force(&self, proposal: &Arc<Proposal>, ledger: &LedgerHandle) -> bool {
        let author = Author {
            by: None,
            origin: Origin::File,
        };
        let accept = |revision| match self.from {
            RulesFrom::Api if revision > 0 => Err(NotTaken::Needless),
            _ => Ok(()),
        };
        match change(ledger, proposal, &author, false, accept).await {
            Ok(outcome) => {
                let revision = outcome.revision;
                tracing::info!(revision, "the rule file is in force");
                true
            }
            Err(NotTaken::Needless) => {
                tracing::info!("there are rules on record; the rule file is left alone");
                true
            }
            Err(NotTaken::Refused(error)) => {
                tracing::warn!(error = chain(&error), "the rule file is not in force yet");
                false
            }
        }
    }
}

/// Why the rules of a file were not put in force.
enum NotTaken {
    /// There are rules already.
    Needless,
    Refused(Refusal),
}

impl From<Refusal> for NotTaken {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn refused(error: &RuleSourceError, metrics: &Metrics) {
    metrics.rules_refused.inc();
    tracing::error!(
        error = chain(error),
        "the rule file is refused; the rules before it stay"
    );
}

/// Reads as much as says that a file is too long, and no more.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_LEN_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
