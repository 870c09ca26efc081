//! What one partition's counting means for the way up.

use super::{Upstream, send::mark_dirty, stake::Stake, stream::Slice};
use crate::{
    key::{CounterKey, RuleId},
    ledger::{
        record::{Step, StepKind},
        shard::Shard,
    },
    rule::Rule,
    time::Timestamp,
};

impl Shard {
    /// Takes a step that is on record.
    pub(in crate::ledger) fn step(&mut self, step: Step) {
        match step.kind() {
            StepKind::Life => self.stream.begin_life(step.epoch),
            StepKind::Cut => self.stream.cut(),
            StepKind::Acknowledged => self.stream.acknowledged(),
            StepKind::Anew => self.stream.anew(step.epoch),
            StepKind::Unknown => {}
        }
    }

    /// Hits were counted that the aggregator above is to hear of.
    pub(in crate::ledger) fn forward(&mut self, key: CounterKey, slice: Slice, now: Timestamp) {
        self.stream.note(key, slice);
        if let Some(stake) = self.stakes.get_mut(&key) {
            stake.spend(slice.hits, slice.returned, now);
            mark_dirty(&mut self.dirty, key, stake);
        }
    }

    /// The stake in a key, made if there is none; none if there is no room for one.
    pub(in crate::ledger) fn stake(
        &mut self,
        key: CounterKey,
        rule: RuleId,
        now: Timestamp,
    ) -> Option<&mut Stake> {
        if self.stakes.len() >= self.stakes_max && !self.stakes.contains_key(&key) {
            return None;
        }
        let fresh = || Stake::new(rule, now);
        Some(self.stakes.entry(key).or_insert_with(fresh))
    }
}

/// What a request or a claim has asked of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::ledger) struct Demand {
    /// Hits asked for.
    pub(in crate::ledger) offered: u64,
    /// Of those, hits that could not be lent.
    pub(in crate::ledger) lacking: u64,
    /// Whether the limit was exceeded, and its rule has a penalty for that.
    pub(in crate::ledger) exceeded: bool,
    /// What is left to lend, in millionths of a hit.
    pub(in crate::ledger) free: i64,
}

impl Upstream {
    /// Takes note of what was asked of a key, and has the aggregator above asked if that
    /// is of use.
    pub(in crate::ledger) fn note(
        &mut self,
        shard: &mut Shard,
        key: CounterKey,
        rule: &Rule,
        demand: Demand,
        now: Timestamp,
    ) {
        let Some(stake) = shard.stakes.get_mut(&key) else {
            return;
        };
        stake.offer(demand.offered, now);
        stake.lack(demand.lacking);
        if demand.exceeded {
            stake.exceed();
        }
        mark_dirty(&mut shard.dirty, key, stake);
        if stake.has_to_ask(demand.free, self.round_trip(), now) && !self.is_away(now) {
            self.ask(key, stake);
        }
        if let Some(within) = rule.report_interval().filter(|at| *at < super::send::FLUSH) {
            let due = now.after(within);
            let due = shard.hasty.map_or(due, |hasty| hasty.min(due));
            shard.hasty = Some(due);
            self.hurry(due);
        }
    }
}
