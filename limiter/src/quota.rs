//! A quota: so many hits per window, by one of three algorithms.

use core::num::NonZeroU64;

use crate::{time::Micros, window::Window};

/// How a quota is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The count of the window that holds now.
    FixedWindow,
    /// The count of this window, plus the part of the last one that a window
    /// ending now still reaches into, taken as if its hits were spread evenly.
    #[default]
    SlidingWindow,
    /// A bucket of tokens that refills evenly.
    TokenBucket,
}

/// A limit per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Hits per window; for a token bucket the tokens that come back in one.
    pub limit: NonZeroU64,
    /// The window. A token bucket has none that is a calendar month.
    pub window: Window,
    /// How it is counted.
    pub algorithm: Algorithm,
    /// What a full token bucket holds; the other algorithms have no use for it.
    burst: NonZeroU64,
}

/// Reports in the time in which the whole capacity flows back.
const REPORTS_PER_REFILL: u64 = 6;

/// A window is short if it is over within so many round trips to the aggregator above.
const SHORT_ROUND_TRIPS: u64 = 16;

/// No report follows another sooner than this, in microseconds.
const REPORT_MIN: u64 = 50_000;

impl Quota {
    /// A quota whose bucket, if it is one, holds `limit` tokens.
    pub const fn new(limit: NonZeroU64, window: Window, algorithm: Algorithm) -> Self {
        Self {
            limit,
            window,
            algorithm,
            burst: limit,
        }
    }

    /// The same quota with a bucket that holds `burst` tokens.
    #[must_use]
    pub const fn with_burst(mut self, burst: NonZeroU64) -> Self {
        self.burst = burst;
        self
    }

    /// The most that one request may cost: a larger one is never allowed.
    pub const fn capacity(&self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket => self.burst.get(),
            Algorithm::FixedWindow | Algorithm::SlidingWindow => self.limit.get(),
        }
    }

    /// How often its keys have to be reported, so that what is not in the books yet
    /// is a small part of what flows back meanwhile. In a fixed window nothing does.
    pub const fn report_interval(&self) -> Option<Micros> {
        match self.algorithm {
            Algorithm::FixedWindow => None,
            Algorithm::SlidingWindow | Algorithm::TokenBucket => Some(self.part_of_refill()),
        }
    }

    /// The same of a limit that is shared over regions, where a window's limit is lent as
    /// it comes in.
    pub(crate) const fn part_of_refill(&self) -> Micros {
        let part = self.refill().get() / REPORTS_PER_REFILL;
        Micros::new(if part < REPORT_MIN { REPORT_MIN } else { part })
    }

    /// Whether the aggregator above, whose answers take so long, lends parts of it as it
    /// comes in and not what is left of each window.
    pub(crate) const fn is_short(&self, round_trip: Micros) -> bool {
        self.refill().get() < round_trip.get().saturating_mul(SHORT_ROUND_TRIPS)
    }

    /// The time in which the whole capacity is there again.
    pub(crate) const fn refill(&self) -> Micros {
        match self.algorithm {
            Algorithm::FixedWindow | Algorithm::SlidingWindow => self.window.longest(),
            Algorithm::TokenBucket => self.memory(),
        }
    }

    /// How long a count stays of any use after its last hit: once this much
    /// time has passed, a fresh counter would answer the same.
    pub const fn memory(&self) -> Micros {
        let window = self.window.longest();
        match self.algorithm {
            Algorithm::FixedWindow => window,
            Algorithm::SlidingWindow => window.plus(window),
            Algorithm::TokenBucket => {
                let full = (self.burst.get() as u128 * window.get() as u128)
                    .div_ceil(self.limit.get() as u128);
                if full > u64::MAX as u128 {
                    Micros::new(u64::MAX)
                } else {
                    #[allow(clippy::cast_possible_truncation, reason = "just compared")]
                    Micros::new(full as u64)
                }
            }
        }
    }
}
