//! The rule file: read at start, and again whenever it changes.
//!
//! A file that fails is refused whole, and the rules before it stay in force. A
//! change is at every source with its next flush: well within 2 s.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use limiter::{
    key::HashSeed,
    ruleset::{RuleSet, RuleSetError},
};

use super::{
    metrics::Metrics,
    task::LedgerHandle,
    watched::{LOOK_EVERY, Watch},
};
use crate::{
    chain::chain,
    rules::{FILE_LEN_MAX, Problems, RuleFile},
};

/// A rule file on disk.
#[derive(Clone, Debug)]
pub(super) struct RuleSource {
    path: PathBuf,
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
    /// It does not say what a rule file says: one line for each thing wrong.
    #[error(transparent)]
    Wrong(#[from] Problems),
    /// What it says does not make a set.
    #[error(transparent)]
    Set(#[from] RuleSetError),
}

impl RuleSource {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The rules in it, without a revision.
    pub(super) fn load(&self) -> Result<(Vec<u8>, RuleSet), RuleSourceError> {
        let bytes = self.read()?;
        let rules = self.parse(&bytes)?;
        Ok((bytes, rules))
    }

    fn read(&self) -> Result<Vec<u8>, RuleSourceError> {
        read_bounded(&self.path).map_err(|source| RuleSourceError::Read {
            path: self.path.clone(),
            source,
        })
    }

    fn parse(&self, bytes: &[u8]) -> Result<RuleSet, RuleSourceError> {
        let name = self.path.display().to_string();
        let file = RuleFile::parse(&name, bytes)?;
        // The ledger numbers them.
        Ok(file.into_rule_set(0, HashSeed::default())?)
    }

    /// Puts the rules read at start in force, then looks at the file for ever.
    pub(super) async fn keep_in_force(
        self,
        bytes: Vec<u8>,
        rules: RuleSet,
        ledger: LedgerHandle,
        metrics: Arc<Metrics>,
    ) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        while !put_in_force(rules.clone(), &ledger).await {
            looks.tick().await;
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
                Ok(rules) => put_in_force(rules, &ledger).await,
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
}

/// Whether it worked.
async fn put_in_force(rules: RuleSet, ledger: &LedgerHandle) -> bool {
    match ledger.set_rules(rules).await {
        Ok(revision) => {
            tracing::info!(revision, "the rule file is in force");
            true
        }
        Err(error) => {
            tracing::warn!(error = chain(&error), "the rule file is not in force yet");
            false
        }
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
