//! What a source makes of the region's word.

use alloc::{string::ToString, sync::Arc};

use prost::Message;

use super::{Limiter, ReplyError, outbox::Fate};
use crate::{
    borrow::Lease,
    key::CounterKey,
    ruleset::RuleSet,
    time::{Micros, Timestamp},
    wire::{Ack, LeaseGroup, SyncReply},
};

/// How soon a source that has never been answered tries again: until it has rules
/// it lets everything pass.
const FIRST_RETRY: Micros = Micros::from_millis(100);

/// How soon a source speaks again that was first answered by a region that did not
/// know yet how many there are.
const SECOND_WORD: Micros = Micros::from_millis(70);

impl Limiter {
    /// Takes in the region's answer to a message. Held requests may be decided
    /// anew afterwards.
    pub fn handle_reply(&mut self, id: u64, body: &[u8], now: Timestamp) -> Result<(), ReplyError> {
        let decoded = SyncReply::decode(body).ok();
        let Some(reply) = decoded.filter(|reply| reply.message == id) else {
            self.handle_no_answer(id, now);
            return Err(ReplyError::Malformed);
        };
        let sent = Timestamp::from_micros(reply.sent_at_us);
        if self.link.last_reply.is_none() && reply.sources == u32::MAX {
            self.next_flush = self.next_flush.min(now.after(SECOND_WORD));
        }
        self.link
            .answered(sent, Timestamp::from_micros(reply.now_us), now);
        self.sources.hear(reply.sources);
        self.regions.hear(reply.regions);
        self.far.known = self.far.told;
        self.heard_us = self.heard_us.max(reply.now_us);
        self.crowd
            .hear(&reply.crowded, reply.crowded_more, sent, now);
        for ack in &reply.acks {
            self.acknowledge(ack, now);
        }
        for group in &reply.leases {
            self.take_leases(group, reply.message, sent, now);
        }
        match reply.rules {
            Some(rules) => {
                let rules = RuleSet::read(rules, self.rules.lists())
                    .map_err(|error| ReplyError::Rules(error.to_string()))?;
                self.set_rules(Arc::new(rules));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes in that a message was not answered (refused, an error, a timeout of
    /// the transport): what was in it is sent again with the next flush.
    pub fn handle_no_answer(&mut self, id: u64, now: Timestamp) {
        self.link.refused();
        self.outbox.unanswered(id);
        if self.link.last_reply.is_none() {
            self.next_flush = self.next_flush.min(now.after(FIRST_RETRY));
        }
        for entry in self
            .table
            .iter_mut()
            .filter(|entry| entry.claim.message == id)
        {
            entry.claim.open = false;
        }
    }

    fn acknowledge(&mut self, ack: &Ack, now: Timestamp) {
        if let Fate::Counted(deltas) = self.outbox.acknowledge(ack, now.as_micros()) {
            for delta in deltas {
                if let Some(entry) = self.table.get_mut(delta.slot) {
                    entry.report.unacked = entry.report.unacked.saturating_sub(delta.hits);
                    entry.settle_crossing(now);
                }
            }
        }
    }

    fn take_leases(&mut self, group: &LeaseGroup, message: u64, sent: Timestamp, now: Timestamp) {
        for (place, bytes) in group.keys.as_chunks::<16>().0.iter().enumerate() {
            let Some(slot) = self.table.find(CounterKey::from_bytes(*bytes)) else {
                continue;
            };
            let Some(entry) = self.table.get_mut(slot) else {
                continue;
            };
            if entry.claim.message != message || !entry.claim.open {
                continue;
            }
            let lease = entry.lease.granted(group, place, entry.claim.spent, sent);
            let tokens = entry.left_of(lease.tokens);
            entry.lease = Lease { tokens, ..lease };
            let penalty = group.penalty_ms.get(place).copied().unwrap_or(0);
            if penalty > 0 {
                entry.penalty_until = sent.after(Micros::from_millis(penalty));
            }
            entry.settle_claim();
            entry.settle_crossing(now);
        }
    }
}
