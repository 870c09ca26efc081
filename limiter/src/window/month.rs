//! Months of the calendar, in UTC, from January 1970 on.
//!
//! The proleptic Gregorian calendar, without leap seconds, as Unix time has it.
//! Years are counted from March, so that the day that only some have is the last:
//! then a month's first day is a fixed number of days into its year, and a year's
//! a fixed number into its 400 years.

use core::num::NonZeroU64;

use crate::time::{Micros, Timestamp};

/// Microseconds of a day.
const DAY: u64 = 86_400_000_000;

/// Days of 400 years, which are alike.
const ERA: u64 = 146_097;

/// Days from 1 March 0000 to 1 January 1970.
const EPOCH: u64 = 719_468;

/// Months from March 0000 to January 1970.
const EPOCH_MONTHS: u64 = 1_970 * 12 - 2;

/// The longest that a month can be.
pub(super) const LONGEST: Micros = Micros::new(31 * DAY);

/// The last month that begins within 64 bits of microseconds.
const LAST: u64 = 7_014_648;

/// A month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Month {
    /// Counted from January 1970.
    index: u64,
    /// Its first day, counted from 1 January 1970.
    first: u64,
    days: u64,
}

impl Month {
    /// The month that holds this instant.
    pub(super) const fn holding(at: Timestamp) -> Self {
        let day = at.as_micros() / DAY + EPOCH;
        let (era, of_era) = (day / ERA, day % ERA);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - days_before_year(year);
        let month = (5 * of_year + 2) / 153;
        Self::of((era * 400 + year) * 12 + month)
    }

    /// The month so many after March 0000; none is before 1970.
    const fn of(since_march: u64) -> Self {
        let first = day_of(since_march);
        Self {
            index: since_march - EPOCH_MONTHS,
            first: first - EPOCH,
            days: day_of(since_march + 1) - first,
        }
    }

    pub(super) const fn index(self) -> u64 {
        self.index
    }

    /// Its first instant.
    pub(super) const fn start(self) -> Timestamp {
        Timestamp::from_micros(self.first.saturating_mul(DAY))
    }

    /// Its length in microseconds.
    pub(super) const fn micros(self) -> NonZeroU64 {
        match NonZeroU64::new(self.days * DAY) {
            Some(micros) => micros,
            None => NonZeroU64::MIN,
        }
    }
}

/// The first instant of the month of this index, or the last instant there is.
pub(super) const fn start(index: u64) -> Timestamp {
    if index > LAST {
        return Timestamp::from_micros(u64::MAX);
    }
    Month::of(index + EPOCH_MONTHS).start()
}

/// The first day of the month so many after March 0000, from 1 March 0000.
const fn day_of(since_march: u64) -> u64 {
    let (year, month) = (since_march / 12, since_march % 12);
    year / 400 * ERA + days_before_year(year % 400) + (153 * month + 2) / 5
}

/// Days of this many years from the first of 400.
const fn days_before_year(year: u64) -> u64 {
    year * 365 + year / 4 - year / 100
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Seconds since 1970 of instants that were looked up elsewhere, each the first
    /// of its month, with the month's index and days.
    const KNOWN: [(u64, u64, u64); 10] = [
        (0, 0, 31),                 // 1970-01
        (2_678_400, 1, 28),         // 1970-02
        (68_256_000, 26, 31),       // 1972-03
        (949_363_200, 361, 29),     // 2000-02
        (1_706_745_600, 649, 29),   // 2024-02
        (1_709_251_200, 650, 31),   // 2024-03
        (1_733_011_200, 659, 31),   // 2024-12
        (1_735_689_600, 660, 31),   // 2025-01
        (1_738_368_000, 661, 28),   // 2025-02
        (4_107_542_400, 1_562, 31), // 2100-03, after a February of 28
    ];

    #[test]
    fn a_month_begins_on_its_first_and_is_as_long_as_the_calendar_says() {
        for (secs, index, days) in KNOWN {
            let first = Timestamp::from_millis(secs * 1_000);
            let month = Month::holding(first);
            assert_eq!((month.index, month.days), (index, days), "{secs}");
            assert_eq!(month.start(), first, "{secs}");
            assert_eq!(start(index), first, "{secs}");
            let end = Timestamp::from_micros(secs * 1_000_000 + days * DAY);
            assert_eq!(Month::holding(end.before(Micros::new(1))), month, "{secs}");
            assert_eq!(Month::holding(end).index, index + 1, "{secs}");
        }
    }

    #[test]
    fn the_last_instant_there_is_has_its_month() {
        let last = Month::holding(Timestamp::from_micros(u64::MAX));
        assert_eq!(last.index, LAST);
        assert!(last.start() < Timestamp::from_micros(u64::MAX));
        assert_eq!(start(LAST + 1), Timestamp::from_micros(u64::MAX));
        assert_eq!(start(u64::MAX), Timestamp::from_micros(u64::MAX));
    }

    proptest! {
        #[test]
        fn every_instant_is_in_the_month_that_holds_it(micros: u64) {
            let at = Timestamp::from_micros(micros);
            let month = Month::holding(at);
            prop_assert!(month.start() <= at);
            prop_assert!(at.since(month.start()).get() < month.micros().get());
            prop_assert!((28..=31).contains(&month.days));
            prop_assert_eq!(start(month.index), month.start());
        }
    }
}
