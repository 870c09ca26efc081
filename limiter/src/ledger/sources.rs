//! Who speaks to this region: how many sources there are, and which of them are
//! too far away to wait for an answer.

use alloc::vec::Vec;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::{
    cold::Fleet,
    time::{Micros, Timestamp},
    wire::SyncRequest,
};

/// How long after it was last heard of a source counts as there.
pub(super) const SOURCE_MEMORY: Micros = Micros::from_secs(30);

/// How long a ledger listens before it says how many sources there are.
const LEARNING: Micros = Micros::from_secs(3);

/// The same for one whose books are empty: nothing has been admitted yet, and
/// every source flushes once a second.
const LEARNING_EMPTY: Micros = Micros::from_millis(1_100);

/// From the first few sources nothing can be told.
const TOO_SOON: Micros = Micros::from_millis(60);

/// How often those that are gone are looked for.
const SWEEP_EVERY: Micros = Micros::from_secs(1);

/// All sources heard of lately.
pub(super) struct Sources {
    heard: HashMap<u64, Source, RandomState>,
    /// When the first message came, and whether the books were empty then.
    first: Option<(Timestamp, bool)>,
    /// When the latest of those known now was first heard of.
    newest: Timestamp,
    swept: Timestamp,
    impatient: u32,
    regions: u32,
}

struct Source {
    at: Timestamp,
    way: Way,
}

/// How far away a source is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    /// Its requests wait for an answer.
    #[default]
    Near,
    /// They do not.
    Far,
    /// It is a region.
    Region,
}

impl Way {
    /// What a message says.
    pub(super) const fn of(message: &SyncRequest) -> Self {
        match (message.sources > 0, message.impatient) {
            (true, _) => Self::Region,
            (false, true) => Self::Far,
            (false, false) => Self::Near,
        }
    }
}

impl Sources {
    pub(super) const fn new(hash: RandomState) -> Self {
        Self {
            heard: HashMap::with_hasher(hash),
            first: None,
            newest: Timestamp::from_micros(0),
            swept: Timestamp::from_micros(0),
            impatient: 0,
            regions: 0,
        }
    }

    /// Takes note of a message.
    pub(super) fn hear(&mut self, source: u64, way: Way, empty: bool, now: Timestamp) {
        self.first.get_or_insert((now, empty));
        let newest = &mut self.newest;
        let known = self.heard.entry(source).or_insert_with(|| {
            *newest = now;
            Source {
                at: now,
                way: Way::Near,
            }
        });
        known.at = now;
        let before = core::mem::replace(&mut known.way, way);
        self.tally(before, u32::saturating_sub);
        self.tally(way, u32::saturating_add);
        if now.since(self.swept) >= SWEEP_EVERY {
            self.sweep(now);
        }
    }

    fn tally(&mut self, way: Way, with: impl Fn(u32, u32) -> u32) {
        match way {
            Way::Near => {}
            Way::Far => self.impatient = with(self.impatient, 1),
            Way::Region => self.regions = with(self.regions, 1),
        }
    }

    /// Who may admit unasked.
    pub(super) fn fleet(&self, now: Timestamp) -> Fleet {
        Fleet {
            sources: self.expected(now),
            impatient: self.impatient,
            regions: self.regions,
        }
    }

    /// Forgets those that are gone.
    pub(super) fn sweep(&mut self, now: Timestamp) {
        self.swept = now;
        self.heard
            .retain(|_, source| now.since(source.at) < SOURCE_MEMORY);
        let count = |way: Way| {
            let those = self.heard.values().filter(|source| source.way == way);
            u32::try_from(those.count()).unwrap_or(u32::MAX)
        };
        (self.impatient, self.regions) = (count(Way::Far), count(Way::Region));
    }

    /// Sources heard of in the last half minute, as of now.
    pub(super) fn count(&self, now: Timestamp) -> usize {
        let there = |source: &&Source| now.since(source.at) < SOURCE_MEMORY;
        self.heard.values().filter(there).count()
    }

    /// How long each of them has been silent, the shortest first.
    pub(super) fn silences(&self, now: Timestamp) -> Vec<Micros> {
        let silent = self.heard.values().map(|source| now.since(source.at));
        let mut silences: Vec<Micros> = silent.filter(|time| *time < SOURCE_MEMORY).collect();
        silences.sort_unstable();
        silences
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
        // As many again in the time that is left, and half as many to be careful;
        // or as many as could have kept silent since the latest new one.
        let all = LEARNING_EMPTY.get();
        let scaled = u64::from(heard).saturating_mul(all).saturating_mul(3);
        let scaled = scaled / passed.get().saturating_mul(2).max(1);
        let silent = all.saturating_mul(3) / now.since(self.newest).get().max(1);
        let careful = scaled.min(u64::from(heard).saturating_add(silent));
        u32::try_from(careful).unwrap_or(u32::MAX)
    }
}
