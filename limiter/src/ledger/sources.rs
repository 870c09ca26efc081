//! Who speaks to this region: how many sources there are, and which of them are
//! too far away to wait for an answer.

use ahash::RandomState;
use hashbrown::HashMap;

use super::loan::Claim;
use crate::time::{Micros, Timestamp};

/// How long after it was last heard of a source counts as there.
pub(super) const SOURCE_MEMORY: Micros = Micros::from_secs(30);

/// How long a ledger listens before it says how many sources there are.
const LEARNING: Micros = Micros::from_secs(3);

/// The same for one whose books are empty: nothing has been admitted yet, and
/// every source flushes once a second.
const LEARNING_EMPTY: Micros = Micros::from_millis(1_100);

/// From the first few sources nothing can be told.
const TOO_SOON: Micros = Micros::from_millis(100);

/// How often those that are gone are looked for.
const SWEEP_EVERY: Micros = Micros::from_secs(1);

/// All sources heard of lately.
pub(super) struct Sources {
    heard: HashMap<u64, Source, RandomState>,
    /// When the first message came, and whether the books were empty then.
    first: Option<(Timestamp, bool)>,
    swept: Timestamp,
}

struct Source {
    at: Timestamp,
    /// Whether its requests do not wait for an answer.
    impatient: bool,
}

impl Sources {
    pub(super) const fn new(hash: RandomState) -> Self {
        Self {
            heard: HashMap::with_hasher(hash),
            first: None,
            swept: Timestamp::from_micros(0),
        }
    }

    /// Takes note of a message.
    pub(super) fn hear(&mut self, source: u64, empty: bool, now: Timestamp) {
        self.first.get_or_insert((now, empty));
        let known = self.heard.entry(source).or_insert(Source {
            at: now,
            impatient: false,
        });
        known.at = now;
        if now.since(self.swept) >= SWEEP_EVERY {
            self.sweep(now);
        }
    }

    /// Whether the requests of a claim's source do not wait. It shows when they
    /// run short.
    pub(super) fn note_patience(&mut self, claim: &Claim) -> bool {
        let Some(source) = self.heard.get_mut(&claim.source) else {
            return false;
        };
        if claim.wanted > 0 {
            source.impatient = claim.waiting == 0;
        }
        source.impatient
    }

    /// Forgets those that are gone.
    pub(super) fn sweep(&mut self, now: Timestamp) {
        self.swept = now;
        self.heard
            .retain(|_, source| now.since(source.at) < SOURCE_MEMORY);
    }

    /// Sources heard of in the last half minute, as of now.
    pub(super) fn count(&self, now: Timestamp) -> usize {
        let there = |source: &&Source| now.since(source.at) < SOURCE_MEMORY;
        self.heard.values().filter(there).count()
    }

    /// How many there are, on the careful side; more than there can be while that
    /// cannot be told.
    pub(super) fn expected(&self, now: Timestamp) -> u32 {
        let heard = u32::try_from(self.heard.len()).unwrap_or(u32::MAX);
        let (passed, empty) = self
            .first
            .map_or((Micros::ZERO, false), |(at, empty)| (now.since(at), empty));
        if passed >= LEARNING || (empty && passed >= LEARNING_EMPTY) {
            return heard;
        }
        if !empty || passed < TOO_SOON {
            return u32::MAX;
        }
        let scaled = u64::from(heard).saturating_mul(LEARNING_EMPTY.get());
        let careful = scaled.saturating_mul(3) / passed.get().saturating_mul(2).max(1);
        u32::try_from(careful).unwrap_or(u32::MAX)
    }
}
