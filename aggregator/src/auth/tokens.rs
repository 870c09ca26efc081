//! The tokens that are known, and how one is found.
//!
//! A token is found by the head of its digest and then compared whole. The time
//! that takes may tell whether such a head is known; that helps nobody, since a
//! token cannot be made to fit a digest.

use std::{collections::HashMap, num::NonZeroU32};

use super::{Digest, Name, Rights};

/// The most tokens there may be.
pub const TOKENS_MAX: usize = 10_000;

/// One token, less the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What it is called, in logs and answers.
    pub name: Name,
    /// For whom it speaks.
    pub tenant: Name,
    /// What it may do.
    pub rights: Rights,
    /// The most requests it may send a second; none leaves only the tenant's
    /// own limit.
    pub requests_per_second: Option<NonZeroU32>,
    /// What the token hashes to.
    pub digest: Digest,
}

/// Every token that is known.
#[derive(Debug, Default)]
pub struct Tokens(HashMap<u64, Holder>);

/// Why tokens are refused as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// Two entries have the same secret.
    #[error("the same sha256 as tokens[{first}]; every token has its own")]
    SameDigest {
        /// The place of the earlier entry.
        first: usize,
        /// The place of the later one.
        second: usize,
    },
    /// Two entries have the same name.
    #[error("the same name as tokens[{first}]; every token has its own")]
    SameName {
        /// The place of the earlier entry.
        first: usize,
        /// The place of the later one.
        second: usize,
    },
}

impl TokensError {
    /// The place of the entry that is one too many.
    pub const fn place(self) -> usize {
        match self {
            Self::SameDigest { second, .. } | Self::SameName { second, .. } => second,
        }
    }
}

impl Tokens {
    /// These tokens.
    pub fn new(holders: Vec<Holder>) -> Result<Self, TokensError> {
        let (mut names, mut heads) = (HashMap::new(), HashMap::new());
        for (second, holder) in holders.iter().enumerate() {
            if let Some(first) = names.insert(holder.name.clone(), second) {
                return Err(TokensError::SameName { first, second });
            }
            if let Some(first) = heads.insert(holder.digest.head(), second) {
                return Err(TokensError::SameDigest { first, second });
            }
        }
        let by_head = |holder: Holder| (holder.digest.head(), holder);
        Ok(Self(holders.into_iter().map(by_head).collect()))
    }

    /// Whose token this is.
    pub fn holder(&self, token: &[u8]) -> Option<&Holder> {
        self.holder_of(&Digest::of(token))
    }

    /// Whose token has this digest.
    pub fn holder_of(&self, digest: &Digest) -> Option<&Holder> {
        let holder = self.0.get(&digest.head())?;
        (holder.digest == *digest).then_some(holder)
    }

    /// Everyone who has a token, in no order.
    pub fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Right, *};

    fn holder(name: &str, token: &str) -> Holder {
        Holder {
            name: name.parse().unwrap(),
            tenant: "t".parse().unwrap(),
            rights: Rights::new(vec![Right::Sync]).unwrap(),
            requests_per_second: None,
            digest: Digest::of(token.as_bytes()),
        }
    }

    #[test]
    fn a_token_is_found_whole_and_never_by_a_part_of_it() {
        let tokens = Tokens::new(vec![holder("a", "one"), holder("b", "two")]).unwrap();
        let name = |token: &str| tokens.holder(token.as_bytes()).map(|h| h.name.to_string());
        assert_eq!(name("two").as_deref(), Some("b"));
        for wrong in ["", "tw", "two ", "TWO"] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_digest_with_a_known_head_is_still_compared_whole() {
        let mut forged = holder("a", "one");
        let (head, rest) = (Digest::of(b"one").to_string(), "0".repeat(48));
        forged.digest = format!("{}{rest}", &head[..16]).parse().unwrap();
        let tokens = Tokens::new(vec![forged]).unwrap();
        assert_eq!(tokens.holder(b"one"), None);
    }

    #[test]
    fn two_that_are_alike_are_refused_with_both_places() {
        let same = vec![holder("a", "one"), holder("b", "one")];
        let refused = TokensError::SameDigest {
            first: 0,
            second: 1,
        };
        assert_eq!(Tokens::new(same).unwrap_err(), refused);
        let same = vec![holder("a", "one"), holder("a", "two")];
        let refused = TokensError::SameName {
            first: 0,
            second: 1,
        };
        assert_eq!(Tokens::new(same).unwrap_err(), refused);
    }
}
