//! Chance, from a seed.
//!
//! Every purpose draws from a stream of its own, so that one more message on
//! the network does not change which requests arrive.

use limiter::time::Micros;
use oorandom::Rand64;

/// What a stream is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// When requests arrive, and where.
    Arrivals,
    /// Delays and losses.
    Network,
    /// Who the sources are, and their hash seeds.
    Identity,
    /// The settings of a swarm's run.
    Swarm,
    /// What services answer, and when.
    Responses,
    /// Delays and losses between regions and the aggregator above them.
    Upstream,
}

/// One stream.
pub(crate) struct Chance(Rand64);

impl Chance {
    /// The stream of this seed for this purpose.
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        Self(Rand64::new_inc(
            u128::from(seed),
            0x5765_6972 + purpose as u128,
        ))
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0.rand_u64()
    }

    /// A number less than `end`; zero if `end` is.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        if end == 0 {
            0
        } else {
            self.0.rand_range(0..end)
        }
    }

    /// A place in a list of this length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// One of several.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.place(choices.len())]
    }

    /// At least zero, less than one.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.rand_float()
    }

    /// True so many times out of one.
    pub(crate) fn hits(&mut self, rate: f64) -> bool {
        rate > 0.0 && self.unit() < rate
    }

    /// A span less than `end`.
    pub(crate) fn within(&mut self, end: Micros) -> Micros {
        Micros::new(self.below(end.get()))
    }

    /// The time to the next of a Poisson process, in seconds.
    pub(crate) fn gap_s(&mut self, rate_per_s: f64) -> f64 {
        -libm::log(1.0 - self.unit()) / rate_per_s
    }
}
