//! Keys that the region has called crowded, and how fresh its word is.

use ahash::RandomState;
use hashbrown::HashMap;

use crate::{
    cold,
    key::CounterKey,
    time::{Micros, Timestamp},
};

/// The most keys remembered. When there are more, every key counts as crowded.
const KEYS_MAX: usize = 16_384;

/// How long a key counts as crowded: the region says so again before.
const MEMORY: Micros = Micros::from_secs(45);

pub(crate) struct Crowded {
    until: HashMap<CounterKey, Timestamp, RandomState>,
    /// Until when every key counts as crowded.
    all_until: Timestamp,
    /// When the region was last heard, by the host's clock.
    heard: Option<Timestamp>,
}

impl Crowded {
    pub(crate) const fn new(hash: RandomState) -> Self {
        Self {
            until: HashMap::with_hasher(hash),
            all_until: Timestamp::from_micros(0),
            heard: None,
        }
    }

    /// Takes in the region's word: `sent` is when it was asked.
    pub(crate) fn hear(&mut self, keys: &[u8], more: bool, sent: Timestamp, now: Timestamp) {
        self.heard = self.heard.max(Some(sent));
        let until = now.after(MEMORY);
        if self.until.len() >= KEYS_MAX / 2 {
            self.until.retain(|_, until| *until > now);
        }
        let keys = keys.as_chunks::<16>().0;
        if more || self.until.len().saturating_add(keys.len()) > KEYS_MAX {
            self.all_until = until;
            return;
        }
        self.until
            .extend(keys.iter().map(|key| (CounterKey::from_bytes(*key), until)));
    }

    /// Whether it is known, and fresh, that a key is not crowded.
    pub(crate) fn is_clear(&self, key: CounterKey, now: Timestamp) -> bool {
        let fresh = self
            .heard
            .is_some_and(|heard| heard <= now && now.since(heard) < cold::FRESH);
        fresh && now >= self.all_until && self.until.get(&key).is_none_or(|until| *until <= now)
    }
}
