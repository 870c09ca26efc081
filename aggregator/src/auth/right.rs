//! What a token may do.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, de::Error};

/// One thing that may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Report hits and be lent some: the edges.
    Sync,
    /// Spend from a rule.
    Check,
    /// Change counters.
    Count,
    /// Read counters, rules, usage and metrics.
    Read,
    /// Change the rules.
    Rules,
    /// Take a copy of everything, whose tenant's it may be.
    Backup,
}

/// One right or more, each once and in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights(Vec<Right>);

/// What was written is no right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRight {
    /// It is not among them. It is not repeated: it may be a token.
    #[error("expected a right: sync, check, count, read, rules or backup")]
    Unknown,
    /// The list is empty.
    #[error(
        "a token without a right is of no use; one or more of sync, check, count, read, rules, backup"
    )]
    None,
}

impl Right {
    const ALL: [Self; 6] = [
        Self::Sync,
        Self::Check,
        Self::Count,
        Self::Read,
        Self::Rules,
        Self::Backup,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Check => "check",
            Self::Count => "count",
            Self::Read => "read",
            Self::Rules => "rules",
            Self::Backup => "backup",
        }
    }
}

impl FromStr for Right {
    type Err = NoRight;

    fn from_str(text: &str) -> Result<Self, NoRight> {
        let mut all = Self::ALL.into_iter();
        all.find(|right| right.name() == text)
            .ok_or(NoRight::Unknown)
    }
}

impl Rights {
    /// These rights.
    pub fn new(mut rights: Vec<Right>) -> Result<Self, NoRight> {
        rights.sort();
        rights.dedup();
        match rights.is_empty() {
            true => Err(NoRight::None),
            false => Ok(Self(rights)),
        }
    }

    /// Whether this is among them.
    pub fn contains(&self, right: Right) -> bool {
        self.0.contains(&right)
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|right| right.name()).collect()
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(", "))
    }
}

impl<'de> Deserialize<'de> for Right {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Rights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rights = Vec::deserialize(deserializer)?;
        Self::new(rights).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_right_reads_back_as_it_is_written() {
        for right in Right::ALL {
            assert_eq!(right.name().parse(), Ok(right));
        }
        assert_eq!("Sync".parse::<Right>(), Err(NoRight::Unknown));
    }

    #[test]
    fn rights_are_a_set_and_never_empty() {
        let rights = Rights::new(vec![Right::Read, Right::Sync, Right::Read]).unwrap();
        assert_eq!(rights.to_string(), "sync, read");
        assert!(rights.contains(Right::Sync) && !rights.contains(Right::Rules));
        assert_eq!(Rights::new(Vec::new()), Err(NoRight::None));
    }
}
