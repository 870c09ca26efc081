//! Fixed windows: which one an instant falls in, and when it ends.
//!
//! Time is cut into slices of equal length, counted from the Unix epoch, so
//! that every POP and the region name the same slice without talking. The
//! slice's index is part of every stored count: a new window is a new count,
//! and nothing is ever reset in place.

use core::num::NonZeroU64;

use crate::time::{Micros, Timestamp};

/// The length of a window: at least one microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window(NonZeroU64);

/// The number of a window, counted from the one that began at the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowIndex(pub u64);

impl Window {
    /// A window of this length; none if it is zero.
    pub const fn new(length: Micros) -> Option<Self> {
        match NonZeroU64::new(length.get()) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    /// Its length.
    pub const fn length(self) -> Micros {
        Micros::new(self.0.get())
    }

    /// Its length in microseconds, which is not zero.
    pub const fn micros(self) -> NonZeroU64 {
        self.0
    }

    /// The window that holds `now`. A window's first instant belongs to it and
    /// its end to the next.
    pub const fn index(self, now: Timestamp) -> WindowIndex {
        WindowIndex(now.as_micros() / self.0.get())
    }

    /// Time since the window holding `now` began: less than its length.
    pub const fn elapsed(self, now: Timestamp) -> Micros {
        Micros::new(now.as_micros() % self.0.get())
    }

    /// Time left until the window holding `now` ends: more than zero, at most
    /// the window's length.
    ///
    /// Becomes the `t` parameter of the `RateLimit` field, which is a delay in
    /// whole seconds and not a date, so that client clocks do not matter
    /// (draft-ietf-httpapi-ratelimit-headers, "Reset Parameter").
    pub const fn reset_after(self, now: Timestamp) -> Micros {
        Micros::new(self.0.get() - now.as_micros() % self.0.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute() -> Option<Window> {
        Window::new(Micros::from_secs(60))
    }

    #[test]
    fn the_first_instant_of_a_window_belongs_to_it_and_not_to_the_one_before() {
        let index = |millis| minute().map(|w| w.index(Timestamp::from_millis(millis)).0);
        assert_eq!(index(59_999), Some(0));
        assert_eq!(index(60_000), Some(1));
    }

    #[test]
    fn a_window_just_begun_ends_a_whole_window_later() {
        let left = |millis| minute().map(|w| w.reset_after(Timestamp::from_millis(millis)));
        assert_eq!(left(60_000), Some(Micros::from_secs(60)));
        assert_eq!(left(119_999), Some(Micros::from_millis(1)));
    }

    #[test]
    fn a_window_without_length_cannot_be_made() {
        assert_eq!(Window::new(Micros::ZERO), None);
    }
}
