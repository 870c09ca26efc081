//! What a counter is called, and what a caller calls one of its adds.
//!
//! A name is kept as text and not as a hash: two counters are the same only if
//! they are called the same, whatever anybody chooses to call theirs.

use alloc::{boxed::Box, string::String};
use core::fmt;

use crate::key::{HashSeed, KeyHasher};

/// The longest name of a tenant, in bytes.
pub const TENANT_BYTES_MAX: usize = 64;

/// The longest name of a namespace, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 128;

/// The longest name of a counter, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// The longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;

/// Stands between the parts of a name. No part may hold it.
const BETWEEN: char = '\0';

/// A counter's name: tenant, namespace, name, each not empty, not too long, and
/// without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(Box<str>);

/// What the caller of an add calls it, so that it counts once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(Box<str>);

/// Why something cannot be called that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is nothing in it.
    #[error("{field} is empty; it must have at least one character")]
    Empty {
        /// Which name.
        field: &'static str,
    },
    /// It takes too many bytes.
    #[error("{field} has {bytes} bytes; it may have {most}")]
    TooLong {
        /// Which name.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// The most it may have.
        most: usize,
    },
    /// It has a character that cannot be seen.
    #[error("{field} has a control character at byte {at}; it may have none")]
    Control {
        /// Which name.
        field: &'static str,
        /// Where.
        at: usize,
    },
}

impl NameError {
    /// Which name: `tenant`, `namespace`, `counter_id` or `idempotency_key`.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Empty { field } | Self::TooLong { field, .. } | Self::Control { field, .. } => {
                field
            }
        }
    }
}

impl CounterId {
    /// Puts a name together.
    ///
    /// # Errors
    /// A part is empty, too long, or has a control character.
    pub fn new(tenant: &str, namespace: &str, name: &str) -> Result<Self, NameError> {
        well_formed("tenant", tenant, TENANT_BYTES_MAX)?;
        well_formed("namespace", namespace, NAMESPACE_BYTES_MAX)?;
        well_formed("counter_id", name, NAME_BYTES_MAX)?;
        Ok(Self(joined(&[tenant, namespace, name])))
    }

    /// The inverse of [`Self::as_text`]; none if it is no such text.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split(BETWEEN);
        let id = Self::new(parts.next()?, parts.next()?, parts.next()?).ok()?;
        parts.next().is_none().then_some(id)
    }

    /// All of it, as on record.
    pub(super) fn as_text(&self) -> &str {
        &self.0
    }

    /// Whose it is.
    pub fn tenant(&self) -> &str {
        tenant_of(&self.0)
    }

    /// Which of the tenant's namespaces it is in.
    pub fn namespace(&self) -> &str {
        self.0.split(BETWEEN).nth(1).unwrap_or_default()
    }

    /// What it is called there.
    pub fn name(&self) -> &str {
        self.0.split(BETWEEN).nth(2).unwrap_or_default()
    }

    /// The partition it lives in: less than [`PARTITIONS`](crate::key::PARTITIONS),
    /// and the same for ever. Someone who chose names to fill one partition would
    /// only see it swept and written more slowly.
    pub fn partition(&self) -> u32 {
        let mut hasher = KeyHasher::new(HashSeed::default());
        hasher.value(self.0.as_bytes());
        hasher.finish().partition()
    }

    /// What an add to it is filed under.
    pub(super) fn with(&self, key: &IdempotencyKey) -> Box<str> {
        joined(&[&self.0, &key.0])
    }
}

impl IdempotencyKey {
    /// Takes what a caller chose.
    ///
    /// # Errors
    /// It is empty, too long, or has a control character.
    pub fn new(key: &str) -> Result<Self, NameError> {
        well_formed("idempotency_key", key, IDEMPOTENCY_KEY_BYTES_MAX)?;
        Ok(Self(key.into()))
    }
}

impl fmt::Debug for CounterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tenant(), self.namespace(), self.name())
    }
}

/// Whose entry it is that is filed under this text.
pub(super) fn tenant_of(text: &str) -> &str {
    text.split(BETWEEN).next().unwrap_or_default()
}

fn joined(parts: &[&str]) -> Box<str> {
    let bytes = parts.iter().map(|part| part.len() + 1).sum::<usize>();
    let mut text = String::with_capacity(bytes.saturating_sub(1));
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            text.push(BETWEEN);
        }
        text.push_str(part);
    }
    text.into_boxed_str()
}

fn well_formed(field: &'static str, text: &str, most: usize) -> Result<(), NameError> {
    let bytes = text.len();
    if bytes == 0 {
        return Err(NameError::Empty { field });
    }
    if bytes > most {
        return Err(NameError::TooLong { field, bytes, most });
    }
    match text.find(char::is_control) {
        Some(at) => Err(NameError::Control { field, at }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_apart_as_it_was_put_together() {
        let id = CounterId::new("acme", "signups", "día/7").unwrap();
        assert_eq!(
            (id.tenant(), id.namespace(), id.name()),
            ("acme", "signups", "día/7")
        );
        assert_eq!(CounterId::from_text(id.as_text()), Some(id));
        assert_eq!(CounterId::from_text("a\0b"), None);
        assert_eq!(CounterId::from_text("a\0b\0c\0d"), None);
    }

    #[test]
    fn where_one_part_ends_and_the_next_begins_matters() {
        let id = |namespace, name| CounterId::new("t", namespace, name).unwrap();
        assert_ne!(id("ab", "c"), id("a", "bc"));
    }

    #[test]
    fn a_name_that_cannot_be_is_told_which_part_and_why() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for (namespace, name, told) in [
            (
                "",
                "n",
                "namespace is empty; it must have at least one character",
            ),
            ("s", &long, "counter_id has 257 bytes; it may have 256"),
            (
                "s",
                "a\nb",
                "counter_id has a control character at byte 1; it may have none",
            ),
        ] {
            let error = CounterId::new("t", namespace, name).unwrap_err();
            assert_eq!(alloc::format!("{error}"), told);
        }
    }
}
