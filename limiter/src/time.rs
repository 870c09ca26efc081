//! Instants and spans of time, in microseconds.
//!
//! An instant is always an argument here, never read: the region's clock is the
//! one that names windows, and an edge only knows it by what the region said.

use core::fmt;

/// An instant: microseconds since the Unix epoch, by the region's clock unless
/// a name says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// A span of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(u64);

impl Timestamp {
    /// The instant `micros` microseconds after the Unix epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The instant `millis` milliseconds after the Unix epoch, or the last
    /// instant there is.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero when it is not in the past.
    pub const fn since(self, earlier: Self) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` later, or the last instant there is.
    #[must_use]
    pub const fn after(self, span: Micros) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The instant `span` earlier, or the Unix epoch.
    #[must_use]
    pub const fn before(self, span: Micros) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// This instant by a clock that is `micros` ahead (or behind, if negative).
    #[must_use]
    pub const fn offset_by(self, micros: i64) -> Self {
        Self(self.0.saturating_add_signed(micros))
    }
}

impl Micros {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `micros` microseconds.
    pub const fn new(micros: u64) -> Self {
        Self(micros)
    }

    /// `millis` milliseconds, or the longest span there is.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// `secs` seconds, or the longest span there is.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// The number of microseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whole milliseconds, rounded up: a wait named by it is never too short.
    pub const fn as_millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// Whole seconds, rounded up: a wait named by it is never too short.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// The two spans one after the other, or the longest span there is.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}µs", self.0)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us % 1_000_000 == 0 => write!(f, "{}s", us / 1_000_000),
            us if us % 1_000 == 0 => write!(f, "{}ms", us / 1_000),
            us => write!(f, "{us}µs"),
        }
    }
}
