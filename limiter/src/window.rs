//! Fixed windows: which one an instant falls in, and when it ends.
//!
//! Time is cut into slices of equal length, counted from the Unix epoch, so
//! that every POP and the region name the same slice without talking. The
//! slice's index is part of every stored count: a new window is a new count,
//! and nothing is ever reset in place. A calendar month is a window, too, of 28
//! to 31 days (`month`): whatever weighs parts of it asks for its own length.

use core::num::NonZeroU64;

use crate::time::{Micros, Timestamp};

mod month;

/// The length of a window: at least one microsecond, or a calendar month (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window(Length);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Length {
    Micros(NonZeroU64),
    Month,
}

/// The number of a window, counted from the one that began at the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowIndex(pub u64);

impl Window {
    /// The month of the calendar, in UTC. Index 0 is January 1970.
    pub const MONTH: Self = Self(Length::Month);

    /// A window of this length; none if it is zero.
    pub const fn new(length: Micros) -> Option<Self> {
        match NonZeroU64::new(length.get()) {
            Some(micros) => Some(Self(Length::Micros(micros))),
            None => None,
        }
    }

    /// Its length, if all such windows have the same: a month has none.
    pub const fn fixed(self) -> Option<Micros> {
        match self.0 {
            Length::Micros(micros) => Some(Micros::new(micros.get())),
            Length::Month => None,
        }
    }

    /// The longest that such a window can be: of a month 31 days.
    pub const fn longest(self) -> Micros {
        match self.0 {
            Length::Micros(micros) => Micros::new(micros.get()),
            Length::Month => month::LONGEST,
        }
    }

    /// The length of the window that holds `at`, in microseconds.
    pub const fn micros_at(self, at: Timestamp) -> NonZeroU64 {
        match self.0 {
            Length::Micros(micros) => micros,
            Length::Month => month::Month::holding(at).micros(),
        }
    }

    /// The window that holds `now`. A window's first instant belongs to it and
    /// its end to the next.
    pub const fn index(self, now: Timestamp) -> WindowIndex {
        WindowIndex(match self.0 {
            Length::Micros(micros) => now.as_micros() / micros.get(),
            Length::Month => month::Month::holding(now).index(),
        })
    }

    /// The first instant of a window, or the last instant there is.
    pub const fn start(self, index: WindowIndex) -> Timestamp {
        match self.0 {
            Length::Micros(micros) => Timestamp::from_micros(index.0.saturating_mul(micros.get())),
            Length::Month => month::start(index.0),
        }
    }

    /// Time since the window holding `now` began: less than its length.
    pub const fn elapsed(self, now: Timestamp) -> Micros {
        match self.0 {
            Length::Micros(micros) => Micros::new(now.as_micros() % micros.get()),
            Length::Month => now.since(month::Month::holding(now).start()),
        }
    }

    /// Time left until the window holding `now` ends: more than zero, at most
    /// the window's length.
    ///
    /// Becomes the `t` parameter of the `RateLimit` field, which is a delay in
    /// whole seconds and not a date, so that client clocks do not matter
    /// (draft-ietf-httpapi-ratelimit-headers, "Reset Parameter").
    pub const fn reset_after(self, now: Timestamp) -> Micros {
        match self.0 {
            Length::Micros(micros) => Micros::new(micros.get() - now.as_micros() % micros.get()),
            Length::Month => {
                let month = month::Month::holding(now);
                let passed = now.since(month.start()).get();
                Micros::new(month.micros().get().saturating_sub(passed))
            }
        }
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
