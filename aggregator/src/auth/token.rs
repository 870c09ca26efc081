//! A token, as its holder has it. It is shown once, when it is made.

use std::fmt;

use super::Digest;

/// How every token begins, so that one that got about is recognised.
pub(super) const PREFIX: &str = "weir_";

/// Random bytes in a token.
const LENGTH: usize = 32;

/// A secret that its holder sends with every request.
pub struct Token(String);

impl Token {
    /// A new one, of 256 random bits from the system.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("{PREFIX}{digits}")))
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the token file has of it.
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tokens_differ_and_neither_shows_by_accident() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), PREFIX.len() + 2 * LENGTH);
        assert!(!format!("{one:?}").contains(PREFIX));
    }
}
