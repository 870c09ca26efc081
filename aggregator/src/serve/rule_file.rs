//! The rule file: read at start, and again whenever it changes.
//!
//! So is each list that it names. A file that fails is refused whole, and the rules
//! before it stay in force. A change is at every source with its next flush: well
//! within 2 s.

use std::{io, path::PathBuf, sync::Arc};

use super::{
    metrics::Metrics,
    rule_change::{Author, Proposal, ProposalError, change},
    rule_content::RuleContent,
    task::{LedgerHandle, Origin, Refusal},
    watched::{LOOK_EVERY, Watch},
};
use crate::{chain::chain, config::RulesFrom};

/// A rule file on disk.
#[derive(Clone, Debug)]
pub(super) struct RuleSource {
    path: PathBuf,
    from: RulesFrom,
    /// The lists that it named when it was last read.
    lists: Vec<PathBuf>,
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
        let lists = Vec::new();
        Self { path, from, lists }
    }

    /// Its path, if it alone says what the rules are.
    pub(super) fn whose_word_counts(&self) -> Option<PathBuf> {
        (self.from == RulesFrom::File).then(|| self.path.clone())
    }

    /// The rules in it, and what was seen of it: nothing of its lists yet, so that they
    /// are looked at once more.
    pub(super) fn load(&mut self) -> Result<(RuleContent, Proposal), RuleSourceError> {
        let content = self.look()?;
        let (proposal, lists) = Proposal::read_at(&self.path, &content.bytes);
        self.lists = lists;
        Ok((content, proposal?))
    }

    fn look(&self) -> Result<RuleContent, RuleSourceError> {
        RuleContent::look(&self.path, &self.lists).map_err(|source| RuleSourceError::Read {
            path: self.path.clone(),
            source,
        })
    }

    /// Reads it where nobody else waits for that, and notes the lists that it names.
    /// If those are others than before they may have changed meanwhile, and the next
    /// look shows it as new.
    async fn parse(&mut self, content: &RuleContent) -> Result<Proposal, RuleSourceError> {
        let (path, bytes) = (self.path.clone(), content.bytes.clone());
        let read = tokio::task::spawn_blocking(move || Proposal::read_at(&path, &bytes));
        let (proposal, lists) = read.await.map_err(|error| RuleSourceError::Read {
            path: self.path.clone(),
            source: io::Error::other(error),
        })?;
        self.lists = lists;
        Ok(proposal?)
    }

    /// Puts the rules read at start in force, then looks at the file for ever. If
    /// it is for a start without rules only, that is all.
    pub(super) async fn keep_in_force(
        mut self,
        mut seen: RuleContent,
        proposal: Proposal,
        ledger: LedgerHandle,
        metrics: Arc<Metrics>,
    ) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        let mut proposal = Arc::new(proposal);
        while !self.put_in_force(&proposal, &ledger).await {
            looks.tick().await;
            // Another member may have to do it, and this one much later.
            if let Ok(content) = self.look()
                && content != seen
                && let Ok(newer) = self.parse(&content).await
            {
                (seen, proposal) = (content, Arc::new(newer));
            }
        }
        if self.from == RulesFrom::Api {
            return;
        }
        let mut watch = Watch::new(seen);
        loop {
            looks.tick().await;
            let content = match watch.look(self.look()) {
                Ok(Some(content)) => content.clone(),
                Ok(None) => continue,
                Err(error) => {
                    refused(&error, &metrics);
                    continue;
                }
            };
            let settled = match self.parse(&content).await {
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
            Err(NotTaken::Refused(Refusal::Elsewhere { .. })) => {
                tracing::debug!("another member puts the rules in force");
                false
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
