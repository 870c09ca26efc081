//! The rule file: read at start, and again whenever it changes.
//!
//! It is read several times a second and compared by its bytes, so that an
//! editor that renames, a clock that stands still and a change within the same
//! second all show. A file is taken once it has been the same twice in a row,
//! so that one that is being written is not; one that fails is refused whole,
//! and the rules before it stay in force.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use limiter::{
    key::HashSeed,
    ruleset::{RuleSet, RuleSetError},
};

use super::{metrics::Metrics, task::LedgerHandle};
use crate::{
    chain::chain,
    rules::{FILE_LEN_MAX, Problems, RuleFile},
};

/// Time between two looks. A change is in force after two looks at most, and
/// at every source with its next flush: well within 2 s.
const LOOK_EVERY: Duration = Duration::from_millis(250);

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
            let Some(bytes) = watch.look(self.read(), &metrics) else {
                continue;
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

/// Which content was dealt with, and which was seen last.
struct Watch {
    settled: Vec<u8>,
    seen: Vec<u8>,
    unreadable: bool,
}

impl Watch {
    fn new(settled: Vec<u8>) -> Self {
        Self {
            seen: settled.clone(),
            settled,
            unreadable: false,
        }
    }

    /// What is to be dealt with: new, and the same as at the last look. A file
    /// that cannot be read is complained of once.
    fn look(&mut self, read: Result<Vec<u8>, RuleSourceError>, metrics: &Metrics) -> Option<&[u8]> {
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => {
                if !self.unreadable {
                    refused(&error, metrics);
                }
                self.unreadable = true;
                return None;
            }
        };
        self.unreadable = false;
        let again = self.seen == bytes;
        self.seen = bytes;
        (again && self.seen != self.settled).then_some(&self.seen)
    }

    /// What was seen last has been dealt with.
    fn settle(&mut self) {
        self.settled.clone_from(&self.seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look<'w>(watch: &'w mut Watch, content: &str) -> Option<&'w [u8]> {
        watch.look(Ok(content.into()), &Metrics::new("test"))
    }

    #[test]
    fn content_that_is_still_changing_is_left_alone() {
        let mut watch = Watch::new(b"old".to_vec());
        assert_eq!(look(&mut watch, "n"), None);
        assert_eq!(look(&mut watch, "ne"), None);
        assert_eq!(look(&mut watch, "ne"), Some(b"ne".as_slice()));
    }

    #[test]
    fn content_is_dealt_with_until_that_is_settled_and_then_not_again() {
        let mut watch = Watch::new(b"old".to_vec());
        let _ = look(&mut watch, "new");
        assert!(look(&mut watch, "new").is_some());
        assert!(look(&mut watch, "new").is_some());
        watch.settle();
        assert_eq!(look(&mut watch, "new"), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_complained_of_once() {
        let metrics = Metrics::new("test");
        let mut watch = Watch::new(b"old".to_vec());
        for _ in 0..3 {
            let gone = RuleSource::new("does/not/exist".into()).read();
            assert_eq!(watch.look(gone, &metrics), None);
        }
        assert_eq!(metrics.rules_refused.get(), 1);
    }
}
