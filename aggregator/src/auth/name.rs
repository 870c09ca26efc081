//! Names of tokens and tenants: short, and plain enough for logs and labels.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, de::Error};

/// The longest name, in bytes.
const LENGTH_MAX: usize = 64;

/// A name: 1 to 64 of `a-z A-Z 0-9 . _ -`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// What was written is no name. It is not repeated: it may be a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a name: 1 to {LENGTH_MAX} letters, digits, `.`, `_` or `-`")]
pub struct NotAName;

impl Name {
    /// The tenant of those who need no token.
    pub fn nobody_in_particular() -> Self {
        Self("default".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Name> for Arc<str> {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=LENGTH_MAX).contains(&text.len()) && text.bytes().all(plain) {
            return Ok(Self(text.into()));
        }
        Err(NotAName)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "team-1.eu_west", &"x".repeat(64)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for wrong in ["", "a b", "a\n", "é", "a/b", &"x".repeat(65)] {
            assert_eq!(wrong.parse::<Name>(), Err(NotAName), "{wrong}");
        }
    }
}
