//! One counter's state, and what each algorithm makes of it.
//!
//! Everything is exact: fractions are compared as products in 128 bits, and
//! rounded only where a whole number is asked for, always to the careful side.
//!
//! A [`Count`] is 24 bytes for every algorithm; the quota says how to read it.
//! It holds the two windows that can still matter, each under its index: a
//! window that has passed is left behind, never reset.

use crate::{
    quota::{Algorithm, Quota},
    time::{Micros, Timestamp},
    window::WindowIndex,
};

/// What has been spent, as of the last hit.
///
/// For windows: `mark` is the window's index, `a` its hits, `b` those of the
/// window before. For a token bucket: `mark` is an instant, and `a`, `b` are
/// the high and low half of what the bucket lacked then, in tokens times the
/// window's microseconds, in which unit `limit` flows back each microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    mark: u64,
    a: u64,
    b: u64,
}

impl Count {
    /// The three words of the state, to be stored.
    pub const fn to_words(self) -> [u64; 3] {
        [self.mark, self.a, self.b]
    }

    /// The inverse of [`Self::to_words`].
    pub const fn from_words([mark, a, b]: [u64; 3]) -> Self {
        Self { mark, a, b }
    }

    /// The largest cost that would be allowed at `now`, in whole hits.
    pub fn remaining(&self, quota: &Quota, now: Timestamp) -> u64 {
        let room = self.room(quota, now) / self.scale(quota, now);
        u64::try_from(room).unwrap_or(u64::MAX)
    }

    /// The same in millionths of a hit, rounded down; negative once more has
    /// been spent than the quota allows.
    pub fn room_micro(&self, quota: &Quota, now: Timestamp) -> i64 {
        let used = self.used(quota, now);
        let scale = self.scale(quota, now);
        let capacity = u128::from(quota.capacity()).saturating_mul(scale);
        let micro = |amount: u128| amount.saturating_mul(1_000_000);
        if used <= capacity {
            i64::try_from(micro(capacity - used) / scale).unwrap_or(i64::MAX)
        } else {
            i64::try_from(micro(used - capacity).div_ceil(scale)).map_or(i64::MIN, |over| -over)
        }
    }

    /// Whether a request of this cost is allowed at `now`.
    pub fn allows(&self, quota: &Quota, cost: u64, now: Timestamp) -> bool {
        self.room(quota, now) >= u128::from(cost).saturating_mul(self.scale(quota, now))
    }

    /// Counts `hits` at `now`, allowed or not.
    pub fn add(&mut self, quota: &Quota, hits: u64, now: Timestamp) {
        self.advance(quota, now);
        if quota.algorithm == Algorithm::TokenBucket {
            let spent = u128::from(hits).saturating_mul(self.scale(quota, now));
            self.set_lacking(self.lacking().saturating_add(spent));
        } else {
            self.a = self.a.saturating_add(hits);
        }
    }

    /// Counts `hits` of window `window`, which may have passed: those of the
    /// window before still count there, older ones matter to no decision. A
    /// token bucket has no windows and takes them as of now.
    ///
    /// Returns whether they matter.
    pub fn add_late(
        &mut self,
        quota: &Quota,
        window: WindowIndex,
        hits: u64,
        now: Timestamp,
    ) -> bool {
        self.advance(quota, now);
        if quota.algorithm == Algorithm::TokenBucket || window.0 >= self.mark {
            self.add(quota, hits, now);
            return true;
        }
        let before = quota.algorithm == Algorithm::SlidingWindow && window.0 + 1 == self.mark;
        if before {
            self.b = self.b.saturating_add(hits);
        }
        before
    }

    /// Counts `hits` of window `window` that were admitted while nobody could be
    /// asked. A bucket was refilled meanwhile, nobody knows how often: it is emptied
    /// by them at the most.
    pub fn add_leaked(&mut self, quota: &Quota, window: WindowIndex, hits: u64, now: Timestamp) {
        if quota.algorithm != Algorithm::TokenBucket {
            self.add_late(quota, window, hits, now);
            return;
        }
        self.advance(quota, now);
        let lacking = self.lacking();
        let empty = u128::from(quota.capacity()).saturating_mul(self.scale(quota, now));
        self.add(quota, hits, now);
        self.set_lacking(self.lacking().min(empty.max(lacking)));
    }

    /// Takes back `hits` that were counted in window `window`: never more than it
    /// holds, and nothing of a window that no longer matters. A token bucket, which
    /// has no windows, gets them back now.
    pub fn give_back(&mut self, quota: &Quota, window: WindowIndex, hits: u64, now: Timestamp) {
        self.advance(quota, now);
        if quota.algorithm == Algorithm::TokenBucket {
            let back = u128::from(hits).saturating_mul(self.scale(quota, now));
            self.set_lacking(self.lacking().saturating_sub(back));
        } else if window.0 >= self.mark {
            self.a = self.a.saturating_sub(hits);
        } else if window.0 + 1 == self.mark {
            self.b = self.b.saturating_sub(hits);
        }
    }

    /// The shortest wait after which `cost` would be allowed if nobody else
    /// came; none if it never is, being more than the capacity.
    pub fn retry_after(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<Micros> {
        let spare = quota.capacity().checked_sub(cost)?;
        if self.allows(quota, cost, now) {
            return Some(Micros::ZERO);
        }
        let mut seen = *self;
        seen.advance(quota, now);
        let left = quota.window.reset_after(now);
        Some(match quota.algorithm {
            Algorithm::FixedWindow => left,
            Algorithm::SlidingWindow => seen.sliding_wait(quota, spare, now),
            Algorithm::TokenBucket => {
                let room = u128::from(spare).saturating_mul(seen.scale(quota, now));
                let over = seen.lacking().saturating_sub(room);
                let wait = over.div_ceil(u128::from(quota.limit.get()));
                Micros::new(u64::try_from(wait).unwrap_or(u64::MAX))
            }
        })
    }

    /// How long until the whole limit is there again, if nobody came.
    pub fn reset_after(&self, quota: &Quota, now: Timestamp) -> Micros {
        let mut seen = *self;
        seen.advance(quota, now);
        let left = quota.window.reset_after(now);
        match quota.algorithm {
            Algorithm::FixedWindow => left,
            Algorithm::SlidingWindow if seen.a > 0 => left.plus(next_length(quota, now, left)),
            Algorithm::SlidingWindow => left,
            Algorithm::TokenBucket => {
                let wait = seen.lacking().div_ceil(u128::from(quota.limit.get()));
                Micros::new(u64::try_from(wait).unwrap_or(u64::MAX))
            }
        }
    }

    /// Millionths of a hit that become free each second from `now` on if
    /// nothing more is spent, at least until the window ends.
    pub fn freed_per_second(&self, quota: &Quota, now: Timestamp) -> u64 {
        let mut seen = *self;
        seen.advance(quota, now);
        let scale = seen.scale(quota, now);
        let per_second = |hits: u64| {
            let micro = u128::from(hits).saturating_mul(1_000_000_000_000);
            u64::try_from(micro / scale).unwrap_or(u64::MAX)
        };
        match quota.algorithm {
            Algorithm::FixedWindow => 0,
            Algorithm::SlidingWindow => per_second(seen.b),
            Algorithm::TokenBucket if seen.lacking() > 0 => per_second(quota.limit.get()),
            Algorithm::TokenBucket => 0,
        }
    }

    /// Hits of the window that holds `now`; none for a token bucket.
    pub fn in_window(&self, quota: &Quota, now: Timestamp) -> u64 {
        let mut seen = *self;
        seen.advance(quota, now);
        if quota.algorithm == Algorithm::TokenBucket {
            0
        } else {
            seen.a
        }
    }

    /// Whether a fresh count would answer the same from `now` on.
    pub fn is_spent(&self, quota: &Quota, now: Timestamp) -> bool {
        let mut seen = *self;
        seen.advance(quota, now);
        match quota.algorithm {
            Algorithm::FixedWindow => seen.a == 0,
            Algorithm::SlidingWindow | Algorithm::TokenBucket => seen.a == 0 && seen.b == 0,
        }
    }

    /// What is left, in hits times [`Self::scale`]: none once it is overspent.
    fn room(&self, quota: &Quota, now: Timestamp) -> u128 {
        u128::from(quota.capacity())
            .saturating_mul(self.scale(quota, now))
            .saturating_sub(self.used(quota, now))
    }

    /// What counts as spent at `now`, in hits times [`Self::scale`].
    fn used(&self, quota: &Quota, now: Timestamp) -> u128 {
        let mut seen = *self;
        seen.advance(quota, now);
        let current = u128::from(seen.a).saturating_mul(seen.scale(quota, now));
        match quota.algorithm {
            Algorithm::FixedWindow => current,
            Algorithm::SlidingWindow => {
                let left = quota.window.reset_after(seen.not_before(quota, now)).get();
                current.saturating_add(u128::from(seen.b) * u128::from(left))
            }
            Algorithm::TokenBucket => seen.lacking(),
        }
    }

    /// Brings the state forward to `now`. A clock that goes back changes
    /// nothing: the latest window seen goes on.
    fn advance(&mut self, quota: &Quota, now: Timestamp) {
        if quota.algorithm == Algorithm::TokenBucket {
            let passed = u128::from(now.as_micros().saturating_sub(self.mark));
            let back = passed.saturating_mul(u128::from(quota.limit.get()));
            self.set_lacking(self.lacking().saturating_sub(back));
            self.mark = self.mark.max(now.as_micros());
            return;
        }
        let index = quota.window.index(now).0;
        if index > self.mark {
            self.b = if index - self.mark == 1 { self.a } else { 0 };
            self.a = 0;
            self.mark = index;
        }
    }

    /// The wait of a sliding window: within this window while the last one's
    /// hits fade, or in the next, while this one's do.
    fn sliding_wait(&self, quota: &Quota, spare: u64, now: Timestamp) -> Micros {
        let length = quota.window.micros_at(self.not_before(quota, now)).get();
        let left = quota.window.reset_after(now);
        if let Some(room) = spare.checked_sub(self.a) {
            return Micros::new(left.get().saturating_sub(fade(room, self.b, length)));
        }
        let next = next_length(quota, now, left).get();
        left.plus(Micros::new(next - fade(spare, self.a, next)))
    }

    /// `now`, or the start of the latest window seen if that is later: a clock
    /// that goes back does not make the past weigh more.
    fn not_before(&self, quota: &Quota, now: Timestamp) -> Timestamp {
        now.max(quota.window.start(WindowIndex(self.mark)))
    }

    /// What a hit is multiplied by so that all amounts are whole: the length in
    /// microseconds of the window that counts. A bucket's is the same at all times.
    fn scale(&self, quota: &Quota, now: Timestamp) -> u128 {
        let length = match quota.window.fixed() {
            Some(length) => length.get(),
            None => quota.window.micros_at(self.not_before(quota, now)).get(),
        };
        u128::from(length)
    }

    const fn lacking(&self) -> u128 {
        ((self.a as u128) << 64) | self.b as u128
    }

    const fn set_lacking(&mut self, lacking: u128) {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the two halves, each whole"
        )]
        {
            self.a = (lacking >> 64) as u64;
            self.b = lacking as u64;
        }
    }
}

/// The length of the window after the one that ends in `left`.
fn next_length(quota: &Quota, now: Timestamp, left: Micros) -> Micros {
    Micros::new(quota.window.micros_at(now.after(left)).get())
}

/// The longest time left of a window at which `hits` of it, fading evenly, come
/// to no more than `room`; at most its length.
fn fade(room: u64, hits: u64, length: u64) -> u64 {
    if hits <= room {
        return length;
    }
    let left = u128::from(room) * u128::from(length) / u128::from(hits);
    u64::try_from(left).unwrap_or(length)
}
