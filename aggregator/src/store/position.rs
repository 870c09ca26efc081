//! Positions: the number of a record in the log.

use core::fmt;

/// The place of a record in the log of one data directory.
///
/// The first record is 1; [`Position::START`] is before it. Each record has
/// the position after the one before it, over the whole life of the directory.
/// A record that was appended but never committed may be lost in a crash, and
/// its position is then given to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// Before the first record: what an empty shard contains.
    pub const START: Self = Self(0);

    /// The position with this number, as the caller once stored it.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, for storing and for metrics.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The position after this one.
    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The position before this one; the start has none and stays.
    pub(super) const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// The position `count` records later.
    pub(super) fn plus(self, count: u32) -> Self {
        Self(self.0.saturating_add(u64::from(count)))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
