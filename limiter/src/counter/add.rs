//! An add, and what becomes of it.

use super::id::{CounterId, IdempotencyKey};
use crate::{
    key::{HashSeed, KeyHasher},
    time::{Micros, Timestamp},
};

/// The longest life an add may give its counter, in seconds: ten years.
pub const TTL_SECS_MAX: u64 = 10 * 365 * 24 * 3_600;

/// What is to be added to which counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Add {
    /// The counter.
    pub id: CounterId,
    /// How much; may be negative, or nothing.
    pub delta: i64,
    /// What the sum must be within for the add to be applied.
    pub bounds: Bounds,
    /// Until when the counter is to live, counted from this add if it is applied.
    /// Without one, its end stays where it is.
    pub ttl: Option<Ttl>,
    /// What the caller calls this add.
    pub idempotency: Option<IdempotencyKey>,
}

/// The least and the most a sum may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    min: i64,
    max: i64,
}

/// How long a counter lives: at least a second, at most [`TTL_SECS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl(Micros);

/// What an add came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The sum including the add; the counter as it is, if it was not applied.
    pub value: i64,
    /// Whether it counted: not if the sum would have been out of bounds.
    pub applied: bool,
    /// Whether this is what an earlier add of the same idempotency key was told.
    pub replayed: bool,
    /// The position of the record that must be durable before anyone is told.
    pub rests_on: u64,
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// The limit's name.
    pub what: &'static str,
    /// What it is.
    pub most: u64,
}

/// Why nothing was added, and nothing remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The sum would not fit into 64 bits.
    #[error("{value} and {delta} come to more than 64 bits hold; nothing was added")]
    Overflow {
        /// The counter as it is.
        value: i64,
        /// What was to be added.
        delta: i64,
    },
    /// The idempotency key was used with another add to the same counter.
    #[error(
        "idempotency_key was used before with another delta, min, max or ttl_s; \
         a new add needs a new key"
    )]
    KeyReused,
    /// The tenant keeps as much as it may.
    #[error("the tenant may keep {} ({}); delete some, or let them expire", .0.most, .0.what)]
    TooMuch(TooMuch),
}

impl Bounds {
    /// No bounds but what 64 bits hold.
    pub const NONE: Self = Self {
        min: i64::MIN,
        max: i64::MAX,
    };

    /// From `min` to `max`, both included; none if nothing lies between.
    pub fn new(min: Option<i64>, max: Option<i64>) -> Option<Self> {
        let (min, max) = (min.unwrap_or(i64::MIN), max.unwrap_or(i64::MAX));
        (min <= max).then_some(Self { min, max })
    }

    pub(super) const fn hold(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }
}

impl Ttl {
    /// So many seconds; none if that is nothing, or too long.
    pub fn from_secs(secs: u64) -> Option<Self> {
        (1..=TTL_SECS_MAX)
            .contains(&secs)
            .then(|| Self(Micros::from_secs(secs)))
    }

    /// When a life that begins now ends.
    pub(super) const fn from(self, now: Timestamp) -> Timestamp {
        now.after(self.0)
    }
}

impl Add {
    /// A plain add: no bounds, no end, no key.
    pub const fn new(id: CounterId, delta: i64) -> Self {
        Self {
            id,
            delta,
            bounds: Bounds::NONE,
            ttl: None,
            idempotency: None,
        }
    }

    /// What tells it from another add of the same key: 64 bits, the same in every
    /// release.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = KeyHasher::new(HashSeed::default());
        for number in [self.delta, self.bounds.min, self.bounds.max] {
            hasher.value(&number.to_be_bytes());
        }
        let ttl = self.ttl.map_or(0, |ttl| ttl.0.get());
        hasher.value(&ttl.to_be_bytes());
        hasher.finish_rule().0
    }
}
