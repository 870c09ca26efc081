//! `weir rules compile`: a rule file in the wire's form, for a host that bundles its
//! rules and reads no YAML.

use std::path::Path;

use limiter::{key::HashSeed, wire};
use prost::Message;

use super::{diagnostic::Problems, file::RuleFile};

/// Why a rule file cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The file is wrong.
    #[error(transparent)]
    File(#[from] Problems),
    /// Each rule is right by itself, but they make no set.
    #[error("the rules make no set: {0}")]
    Set(#[from] limiter::ruleset::RuleSetError),
}

/// A compiled rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// A `RuleSet` of the wire.
    pub bytes: Vec<u8>,
    /// How many rules are in it.
    pub rules: usize,
}

/// Compiles the rule file at `path` as this revision.
pub fn compile(path: &Path, revision: u64) -> Result<Compiled, CompileError> {
    let set = RuleFile::load(path)?.into_rule_set(revision, HashSeed::default())?;
    Ok(Compiled {
        bytes: wire::RuleSet::from(&set).encode_to_vec(),
        rules: set.len(),
    })
}
