//! What a region says to the aggregator above, and when.

use alloc::{collections::BTreeMap, vec::Vec};

use prost::Message;

use super::{Report, Upstream, stake::Stake};
use crate::{
    key::{CounterKey, PARTITIONS},
    ledger::{Journal, Ledger, record::StepKind, shard::Shard},
    time::{Micros, Timestamp},
    wire::{ClaimGroup, Outgoing, SyncRequest},
};

/// Time between two flushes. An empty one asks for the rules: they have to be
/// everywhere within two seconds, and a source asks its region once in one.
pub(super) const FLUSH: Micros = Micros::from_millis(500);

/// About how many keys and windows go into one message.
const KEYS_MAX: usize = 16_384;

/// Time between two questions, so that they share a message.
const ASK_GAP: Micros = Micros::from_millis(5);

/// How soon a region speaks again that has not heard yet how many there are.
const SECOND_WORD: Micros = Micros::from_millis(100);

/// All partitions.
const ALL: u64 = u64::MAX;

/// A bit for each partition: no other number of them compiles.
const _: [(); u64::BITS as usize] = [(); PARTITIONS as usize];

impl Ledger {
    /// The next message for the aggregator above, if one is due. To be called after
    /// everything that changes the ledger and at [`Self::upstream_timeout`], until it
    /// returns none.
    pub fn poll_upstream(&mut self, now: Timestamp, journal: &mut dyn Journal) -> Option<Report> {
        if !self.upstream.is_set() {
            return None;
        }
        self.upstream.begin_flush(now);
        if self.upstream.hasty.is_some_and(|due| due <= now) {
            self.hurry_on(now);
        }
        let told = self.tell(now, journal);
        told.or_else(|| self.ask_upstream(now))
    }

    /// When [`Self::poll_upstream`] wants to be called at the latest; none if there is
    /// nobody above.
    pub fn upstream_timeout(&self) -> Option<Timestamp> {
        let upstream = &self.upstream;
        let asks = !upstream.asking.is_empty();
        let asks = asks.then(|| upstream.asked.after(ASK_GAP));
        let due = [Some(upstream.next_flush), upstream.hasty, asks];
        upstream
            .is_set()
            .then(|| due.into_iter().flatten().min())
            .flatten()
    }

    /// Everything that waits is due at once: the last words before the service ends.
    pub const fn flush_upstream_now(&mut self) {
        self.upstream.next_flush = Timestamp::from_micros(0);
    }

    /// Marks the partitions whose time has come.
    fn hurry_on(&mut self, now: Timestamp) {
        self.upstream.hasty = None;
        for (partition, shard) in self.shards.iter_mut().enumerate() {
            match shard.hasty {
                Some(due) if due <= now => {
                    shard.hasty = None;
                    self.upstream.telling |= 1 << partition;
                }
                Some(due) => self.upstream.hurry(due),
                None => {}
            }
        }
    }

    /// Tells of as many partitions as fit into a message.
    fn tell(&mut self, now: Timestamp, journal: &mut dyn Journal) -> Option<Report> {
        if self.upstream.telling == 0 && !self.upstream.greeting {
            return None;
        }
        let mut request = self.message(now);
        let mut claims = BTreeMap::new();
        let round_trip = self.upstream.round_trip();
        let mut room = KEYS_MAX;
        while self.upstream.telling != 0 && room > 0 {
            let partition = self.upstream.telling.trailing_zeros();
            self.upstream.telling &= !(1 << partition);
            let can_cut = |shard: &Shard| shard.stream.can_cut();
            if self.shards.get(partition as usize).is_some_and(can_cut) {
                self.step(partition, StepKind::Cut, 0, now, journal);
            }
            let Some(shard) = self.shards.get_mut(partition as usize) else {
                continue;
            };
            shard.hasty = None;
            if let Some(batch) = shard.stream.due(request.message, now) {
                let keys = batch.groups.iter().map(|group| group.hits.len());
                room = room.saturating_sub(keys.sum());
                request.batches.push(batch.clone());
            }
            room = room.saturating_sub(shard.dirty.len());
            shard.claim_dirty(&mut claims, (request.message, round_trip), now);
        }
        request.claims = finish(claims);
        let empty = request.batches.is_empty() && request.claims.is_empty();
        if empty && !self.upstream.greeting {
            return None;
        }
        self.upstream.greeting = false;
        let has_batches = !request.batches.is_empty();
        Some(Report {
            message: self.upstream.outgoing(&request, now),
            has_batches,
        })
    }

    /// Claims the keys that cannot wait.
    fn ask_upstream(&mut self, now: Timestamp) -> Option<Report> {
        let upstream = &mut self.upstream;
        if upstream.asking.is_empty() || now < upstream.asked.after(ASK_GAP) {
            return None;
        }
        upstream.asked = now;
        let rest = upstream.asking.len().saturating_sub(KEYS_MAX);
        let keys = upstream.asking.split_off(rest);
        let round_trip = upstream.round_trip();
        let mut request = self.message(now);
        let mut claims = BTreeMap::new();
        for key in keys {
            if let Some(shard) = self.shards.get_mut(key.partition() as usize) {
                shard.claim(key, &mut claims, (request.message, round_trip), now);
            }
        }
        request.claims = finish(claims);
        if request.claims.is_empty() {
            return None;
        }
        Some(Report {
            message: self.upstream.outgoing(&request, now),
            has_batches: false,
        })
    }

    fn message(&mut self, now: Timestamp) -> SyncRequest {
        let sources = self.sources.count(now);
        let upstream = &mut self.upstream;
        // Also greater than what another who speaks for this region has said before.
        upstream.message = upstream.message.saturating_add(1).max(now.as_micros());
        let name = upstream.region.as_ref().map(|region| region.name.clone());
        SyncRequest {
            source: upstream.source,
            message: upstream.message,
            sent_at_us: now.as_micros(),
            rules_revision: self.rules.revision,
            pop: name.unwrap_or_default(),
            batches: Vec::new(),
            claims: Vec::new(),
            heard_us: upstream.heard_us,
            impatient: true,
            lists: self.rules.lists().iter().map(|list| list.id().0).collect(),
            sources: u32::try_from(sources).unwrap_or(u32::MAX).max(1),
            round_trip_us: upstream.link.rtt.get(),
        }
    }
}

impl Upstream {
    /// Begins a flush if it is time for one.
    fn begin_flush(&mut self, now: Timestamp) {
        if now < self.next_flush && self.next_flush <= now.after(FLUSH) {
            return;
        }
        // Its own instants, so that regions that start at once do not speak at once.
        let interval = FLUSH.get();
        let since = now.as_micros().wrapping_sub(self.source % interval) % interval;
        self.next_flush = now.after(Micros::new(interval - since));
        if self.regions == u32::MAX {
            self.next_flush = self.next_flush.min(now.after(SECOND_WORD));
        }
        self.telling = ALL;
        self.greeting = true;
    }

    fn outgoing(&mut self, request: &SyncRequest, now: Timestamp) -> Outgoing {
        self.link.sent(now);
        Outgoing {
            id: request.message,
            body: request.encode_to_vec(),
        }
    }
}

/// Claims by rule, and the keys they are of.
type Claims = BTreeMap<u64, (ClaimGroup, Vec<u8>)>;

fn finish(claims: Claims) -> Vec<ClaimGroup> {
    let finished = claims.into_iter().map(|(rule, (mut group, keys))| {
        (group.rule, group.keys) = (rule, keys.into());
        for column in [&mut group.wanted, &mut group.exceeded] {
            if column.iter().all(|value| *value == 0) {
                column.clear();
            }
        }
        group
    });
    finished.collect()
}

impl Shard {
    /// Claims all keys that have changed.
    fn claim_dirty(&mut self, claims: &mut Claims, at: (u64, Micros), now: Timestamp) {
        for key in core::mem::take(&mut self.dirty) {
            if let Some(stake) = self.stakes.get_mut(&key) {
                stake.dirty = false;
            }
            self.claim(key, claims, at, now);
        }
    }

    /// Claims a key, unless an answer is on its way.
    fn claim(
        &mut self,
        key: CounterKey,
        claims: &mut Claims,
        (message, round_trip): (u64, Micros),
        now: Timestamp,
    ) {
        let Some(stake) = self.stakes.get_mut(&key) else {
            return;
        };
        stake.asking = false;
        if stake.is_asked(round_trip, now) {
            mark_dirty(&mut self.dirty, key, stake);
            return;
        }
        let (group, keys) = claims.entry(stake.rule.0).or_default();
        let unacked = self.stream.unacked(key, message);
        let lent = self.loans.lent(key, now);
        stake.claim_into(group, message, unacked, lent, now);
        keys.extend_from_slice(&key.to_bytes());
        if stake.wants_another_flush() {
            mark_dirty(&mut self.dirty, key, stake);
        }
    }
}

/// Has a key claimed with the next flush.
pub(super) fn mark_dirty(dirty: &mut Vec<CounterKey>, key: CounterKey, stake: &mut Stake) {
    if !stake.dirty {
        stake.dirty = true;
        dirty.push(key);
    }
}
