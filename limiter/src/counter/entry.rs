//! What is kept: counters, and what callers were told of theirs.

use alloc::boxed::Box;

use super::{id::CounterId, record::Answer, table::Named};
use crate::time::Timestamp;

/// A counter in memory.
pub(super) struct Slot {
    pub(super) id: CounterId,
    pub(super) value: i64,
    pub(super) expires: Option<Timestamp>,
    /// The position of the record that says so.
    pub(super) at: u64,
}

/// What the caller of an add was told, to be told again.
pub(super) struct Told {
    /// Counter and idempotency key.
    pub(super) name: Box<str>,
    pub(super) fingerprint: u64,
    pub(super) value: i64,
    pub(super) applied: bool,
    /// When it is forgotten.
    pub(super) until: Timestamp,
    /// The position of the record that says so.
    pub(super) at: u64,
}

impl Named for Slot {
    fn name(&self) -> &str {
        self.id.as_text()
    }

    fn ends(&self) -> Option<Timestamp> {
        self.expires
    }
}

impl Named for Told {
    fn name(&self) -> &str {
        &self.name
    }

    fn ends(&self) -> Option<Timestamp> {
        Some(self.until)
    }
}

impl Told {
    pub(super) fn new(answer: Answer, at: u64) -> Self {
        Self {
            name: answer.name.into_boxed_str(),
            fingerprint: answer.fingerprint,
            value: answer.value,
            applied: answer.applied,
            until: Timestamp::from_micros(answer.until_us),
            at,
        }
    }
}
