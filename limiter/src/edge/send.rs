//! What a source says, and when.

use alloc::vec::Vec;

use prost::Message;

use super::{Limiter, Outgoing, entry::Entry, outbox::Delta, table::Slot};
use crate::{
    time::{Micros, Timestamp},
    wire::{ClaimGroup, SyncRequest},
};

/// The most keys in one message.
const KEYS_MAX: usize = 16_384;

impl Limiter {
    /// The next message to send, if one is due. Call it after every decision
    /// and reply and at [`Self::poll_timeout`], until it returns none.
    pub fn poll_send(&mut self, now: Timestamp) -> Option<Outgoing> {
        if now >= self.next_flush || self.next_flush > now.after(self.settings.flush_interval) {
            self.next_flush = self.next_beat(now);
            return self.flush(now);
        }
        if now >= self.hasty.due && !self.hasty.keys.is_empty() {
            return self.report(now);
        }
        if self.asking.is_empty() {
            return None;
        }
        let mut request = self.message(now);
        let mut asking = core::mem::take(&mut self.asking);
        self.stats.asks = self.stats.asks.saturating_add(1);
        self.claim(&mut asking, &mut request, now);
        asking.clear();
        self.asking = asking;
        Some(self.outgoing(&request, now))
    }

    /// Makes all that is dirty due at once: the last flush of a life.
    pub const fn flush_now(&mut self) {
        self.next_flush = Timestamp::from_micros(0);
    }

    /// The next of the instants at which this source flushes: its own, so that a
    /// fleet that starts at once does not speak at once for ever after.
    fn next_beat(&self, now: Timestamp) -> Timestamp {
        let interval = self.settings.flush_interval.get().max(1);
        let phase = self.identity.source % interval;
        let since = now.as_micros().wrapping_sub(phase) % interval;
        now.after(Micros::new(interval - since))
    }

    /// When [`Self::poll_send`] wants to be called at the latest.
    pub fn poll_timeout(&self) -> Timestamp {
        if self.hasty.keys.is_empty() {
            self.next_flush
        } else {
            self.next_flush.min(self.hasty.due)
        }
    }

    /// What keys have counted that cannot wait for the next flush.
    fn report(&mut self, now: Timestamp) -> Option<Outgoing> {
        let mut request = self.message(now);
        let mut slots = core::mem::take(&mut self.hasty.keys);
        let table = &mut self.table;
        slots.retain(|slot| {
            let entry = table.get_mut(*slot);
            entry.is_some_and(|entry| core::mem::take(&mut entry.claim.hasty))
        });
        if slots.is_empty() {
            self.hasty.keys = slots;
            return None;
        }
        self.batch(&slots, &mut request, now);
        slots.append(&mut self.asking);
        self.claim(&mut slots, &mut request, now);
        slots.clear();
        self.hasty.keys = slots;
        Some(self.outgoing(&request, now))
    }

    /// All that was counted and all that changed since the last flush; none if
    /// that is nothing, and the region was heard of lately.
    fn flush(&mut self, now: Timestamp) -> Option<Outgoing> {
        let mut request = self.message(now);
        let mut slots = core::mem::take(&mut self.dirty);
        let rest = slots.split_off(slots.len().min(KEYS_MAX));
        if !rest.is_empty() {
            self.next_flush = now.after(Micros::new(self.settings.flush_interval.get() / 20));
        }
        self.dirty = rest;
        for slot in &slots {
            if let Some(entry) = self.table.get_mut(*slot) {
                entry.claim.dirty = false;
                entry.claim.hasty = false;
            }
        }
        self.batch(&slots, &mut request, now);
        slots.append(&mut self.asking);
        self.claim(&mut slots, &mut request, now);
        // Room for the next ones: to note a key must not allocate.
        slots.clear();
        slots.append(&mut self.dirty);
        self.dirty = slots;
        let quiet = self
            .link
            .last_reply
            .is_some_and(|at| now.since(at) < self.poll_interval());
        let quiet = quiet && self.sources.told != u32::MAX;
        if request.batches.is_empty() && request.claims.is_empty() && quiet {
            return None;
        }
        Some(self.outgoing(&request, now))
    }

    /// How long the region may go unheard of before an empty message asks for
    /// its rules: they have to be everywhere within two seconds.
    const fn poll_interval(&self) -> Micros {
        Micros::new(self.settings.flush_interval.get() * 9 / 10)
    }

    fn message(&mut self, now: Timestamp) -> SyncRequest {
        self.message = self.message.saturating_add(1);
        // Who does not know yet says that it is far, lest it has to turn away what it is
        // asked before it has said so.
        let hold = self.far.hold_min;
        self.far.told = !self.link.has_answered() || hold.is_some_and(|hold| hold <= self.link.rtt);
        SyncRequest {
            source: self.identity.source,
            message: self.message,
            sent_at_us: now.as_micros(),
            rules_revision: self.rules.revision,
            pop: self.identity.pop.clone(),
            batches: Vec::new(),
            claims: Vec::new(),
            heard_us: self.heard_us,
            impatient: self.far.told,
            lists: self.rules.lists().iter().map(|list| list.id().0).collect(),
            sources: 0,
            round_trip_us: self.link.rtt.get(),
        }
    }

    fn outgoing(&mut self, request: &SyncRequest, now: Timestamp) -> Outgoing {
        self.link.sent(now);
        Outgoing {
            id: request.message,
            body: request.encode_to_vec(),
        }
    }

    /// Puts what these keys counted into a message, and what is to be sent again.
    fn batch(&mut self, slots: &[Slot], request: &mut SyncRequest, now: Timestamp) {
        self.fill_outbox(slots);
        self.outbox.due(request.message, now, |batch, deltas| {
            request.batches.push(batch.clone());
            for delta in deltas {
                if let Some(entry) = self.table.get_mut(delta.slot) {
                    entry.note_batched(request.message, delta.hits);
                }
            }
        });
    }

    /// Cuts what these keys counted into batches, where the partition is free.
    fn fill_outbox(&mut self, slots: &[Slot]) {
        let mut deltas: Vec<Delta> = Vec::with_capacity(slots.len());
        let outbox = &self.outbox;
        self.late
            .take(|key| outbox.is_free(key.partition()), &mut deltas);
        for slot in slots {
            if let Some(entry) = self.table.get_mut(*slot)
                && outbox.is_free(entry.key.partition())
            {
                deltas.extend(entry.take_pending(*slot));
            }
        }
        self.stats.deltas = self.stats.deltas.saturating_add(deltas.len() as u64);
        let order = |delta: &Delta| (delta.key.partition(), delta.rule, delta.window);
        deltas.sort_unstable_by_key(order);
        let same = |one: &Delta, other: &Delta| one.key.partition() == other.key.partition();
        for batch in deltas.chunk_by(same) {
            if let Some(first) = batch.first() {
                self.outbox.put(first.key.partition(), Vec::from(batch));
            }
        }
    }

    /// Claims these keys, each once.
    fn claim(&mut self, slots: &mut Vec<Slot>, request: &mut SyncRequest, now: Timestamp) {
        slots.retain(|slot| {
            self.table
                .get_mut(*slot)
                .is_some_and(|entry| entry.start_claim(request.message))
        });
        slots.sort_unstable_by_key(|slot| self.table.get(*slot).map(|entry| entry.rule));
        for slot in slots.iter() {
            let Some(entry) = self.table.get_mut(*slot) else {
                continue;
            };
            let group = match request.claims.last_mut() {
                Some(group) if group.rule == entry.rule.0 => group,
                _ => {
                    request.claims.push(ClaimGroup {
                        rule: entry.rule.0,
                        ..ClaimGroup::default()
                    });
                    let Some(group) = request.claims.last_mut() else {
                        continue;
                    };
                    group
                }
            };
            entry.claim_into(group, now);
            if entry.wants_another_flush() && !entry.claim.dirty {
                entry.claim.dirty = true;
                self.dirty.push(*slot);
            }
        }
        finish(&mut request.claims, slots, &self.table);
    }
}

/// Writes the key column of each group: the keys stand in the order of `slots`.
fn finish(groups: &mut [ClaimGroup], slots: &[Slot], table: &super::table::Table) {
    let mut entries = slots.iter().filter_map(|slot| table.get(*slot)).peekable();
    for group in groups {
        let mut keys = Vec::with_capacity(group.held_micro.len() * 16);
        while let Some(entry) = entries.next_if(|entry: &&Entry| entry.rule.0 == group.rule) {
            keys.extend_from_slice(&entry.key.to_bytes());
        }
        group.keys = keys.into();
        if group.exceeded.iter().all(|hits| *hits == 0) {
            group.exceeded.clear();
        }
    }
}
