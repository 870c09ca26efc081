//! What a region makes of the word of the aggregator above.

use alloc::{string::ToString, sync::Arc};

use prost::Message;

use super::stream::Fate;
use crate::{
    key::CounterKey,
    ledger::{Journal, Ledger, record::StepKind},
    ruleset::RuleSet,
    time::{Micros, Timestamp},
    wire::{Ack, LeaseGroup, ReplyError, SyncReply},
};

impl Ledger {
    /// Takes in the answer to a message. Rules in it are in force from now on, and on
    /// record.
    pub fn handle_upstream(
        &mut self,
        id: u64,
        body: &[u8],
        now: Timestamp,
        journal: &mut dyn Journal,
    ) -> Result<(), ReplyError> {
        let decoded = SyncReply::decode(body).ok();
        let Some(reply) = decoded.filter(|reply| reply.message == id) else {
            self.upstream_unanswered(id);
            return Err(ReplyError::Malformed);
        };
        let sent = Timestamp::from_micros(reply.sent_at_us);
        let upstream = &mut self.upstream;
        upstream
            .link
            .answered(sent, Timestamp::from_micros(reply.now_us), now);
        upstream.regions = reply.sources.max(1);
        upstream.heard_us = upstream.heard_us.max(reply.now_us);
        upstream
            .crowded
            .hear(&reply.crowded, reply.crowded_more, sent, now);
        for key in reply.crowded.as_chunks::<16>().0 {
            self.crowd.add(CounterKey::from_bytes(*key), now);
        }
        for ack in &reply.acks {
            self.acknowledge(ack, id, now, journal);
        }
        for group in &reply.leases {
            self.take_leases(group, id, sent, now);
        }
        let Some(rules) = reply.rules else {
            return Ok(());
        };
        let rules = RuleSet::read(rules, self.rules.lists())
            .map_err(|error| ReplyError::Rules(error.to_string()))?;
        self.set_rules(Arc::new(rules), now, journal);
        Ok(())
    }

    /// Takes in that a message was not answered (refused, an error, a timeout of the
    /// transport): batches in it are sent again with the next flush.
    pub fn upstream_unanswered(&mut self, id: u64) {
        self.upstream.link.refused();
        for shard in &mut self.shards {
            shard.stream.unanswered(id);
        }
    }

    /// What the clock of the aggregator above says; none before it was heard.
    pub fn upstream_time(&self, now: Timestamp) -> Option<Timestamp> {
        self.upstream.link.region_time(now)
    }

    fn acknowledge(&mut self, ack: &Ack, message: u64, now: Timestamp, journal: &mut dyn Journal) {
        let Some(shard) = self.shards.get_mut(ack.partition as usize) else {
            return;
        };
        match shard.stream.judge(ack, message) {
            Fate::Counted => {
                self.step(ack.partition, StepKind::Acknowledged, 0, now, journal);
            }
            Fate::Anew => {
                let upstream = &mut self.upstream;
                upstream.out_of_order = upstream.out_of_order.saturating_add(1);
                let epoch = now.as_micros();
                self.step(ack.partition, StepKind::Anew, epoch, now, journal);
            }
            Fate::Same => {}
        }
    }

    fn take_leases(&mut self, group: &LeaseGroup, message: u64, sent: Timestamp, now: Timestamp) {
        for (place, key) in super::super::shard::keys(&group.keys).enumerate() {
            let Some(shard) = self.shards.get_mut(key.partition() as usize) else {
                continue;
            };
            let Some(stake) = shard.stakes.get_mut(&key) else {
                continue;
            };
            if !stake.awaits(message) {
                continue;
            }
            stake.take(group, place, sent);
            let penalty = group.penalty_ms.get(place).copied().unwrap_or(0);
            let penalty = sent.after(Micros::from_millis(penalty)).since(now);
            if penalty > Micros::ZERO
                && let Some(loans) = shard.loans.of(key)
                && loans.punish(penalty, now)
                && loans.note_crowd(now)
            {
                self.crowd.add(key, now);
            }
        }
    }
}
