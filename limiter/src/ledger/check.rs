//! A request decided here, by the books alone.

use alloc::vec::Vec;

use super::{
    Journal, Ledger, crowd,
    lend::HIT,
    record::Record,
    upstream::{Demand, Room},
};
use crate::{
    count::Count,
    decision::{Decision, Tier, Verdict},
    key::{CounterKey, RuleId},
    quota::Quota,
    request::{Hit, Query},
    rule::{Action, Rule},
    time::{Micros, Timestamp},
    wire::{Batch, CountGroup},
};

impl Ledger {
    /// Decides one request here, exactly, and counts it if it is allowed: under
    /// all of the rules that apply, or under none. What is lent counts as spent.
    /// A denied request counts under the rules that deny it and say so. Never
    /// holds.
    pub fn check(&mut self, query: &Query, now: Timestamp, journal: &mut dyn Journal) -> Verdict {
        let mut least: Option<Decision> = None;
        let mut denied: Option<Decision> = None;
        let mut shadowed = false;
        for hit in &query.hits {
            let Some(rule) = query.rules.rule(hit.rule) else {
                continue;
            };
            let decision = self.look(rule, query.rules.id(hit.rule), hit, now);
            self.note_demand(rule, hit, decision.remaining, now);
            let fits = decision.remaining >= hit.cost;
            if !fits && rule.action == Action::Deny {
                if denied.is_none_or(|known| decision.frees_after(&known)) {
                    denied = Some(decision);
                }
                continue;
            }
            shadowed |= !fits;
            let left = Decision {
                remaining: decision.remaining.saturating_sub(hit.cost),
                retry_after: None,
                ..decision
            };
            if least.is_none_or(|known| left.remaining < known.remaining) {
                least = Some(left);
            }
        }
        for hit in &query.hits {
            let counts = query.rules.rule(hit.rule).is_some_and(|rule| {
                let id = query.rules.id(hit.rule);
                rule.count_denied && self.look(rule, id, hit, now).remaining < hit.cost
            });
            if denied.is_none() || counts {
                self.spend(query, hit, now, journal);
            }
        }
        match (denied, least) {
            (Some(decision), _) => {
                self.punish(query, &decision, now);
                Verdict::Deny(decision)
            }
            (None, Some(decision)) => Verdict::Allow(Decision {
                shadowed,
                ..decision
            }),
            (None, None) => Verdict::Pass,
        }
    }

    /// What the books say of one hit: `remaining` before it is spent, and
    /// `retry_after` only if it does not fit.
    fn look(&mut self, rule: &Rule, id: Option<RuleId>, hit: &Hit, now: Timestamp) -> Decision {
        let quota = &rule.quota;
        let claimed = id.is_some_and(|id| self.claimed.contains(&id));
        let reserve = if claimed {
            crowd::reserve(quota, self.fleet(rule, now))
        } else {
            0
        };
        let Left {
            count,
            hits,
            lent,
            patience,
        } = self.left(rule, id, hit, reserve, now);
        let remaining = hits.saturating_sub(lent);
        let wait = |lent| wait(&count, quota, hit.cost, lent, now).map(|at| at.max(patience));
        let penalty = self.punished(rule, hit.key, now);
        let (remaining, retry_after) = if penalty > Micros::ZERO {
            (0, wait(lent).map(|free| free.max(penalty)))
        } else if remaining >= hit.cost {
            (remaining, None)
        } else {
            (remaining, wait(lent))
        };
        Decision {
            rule: hit.rule,
            limit: quota.limit.get(),
            remaining,
            reset_after: count.reset_after(quota, now),
            retry_after,
            tier: Tier::Region,
            shadowed: false,
        }
    }

    /// What is left of a key, and what is lent of that.
    fn left(
        &mut self,
        rule: &Rule,
        id: Option<RuleId>,
        hit: &Hit,
        reserve: u64,
        now: Timestamp,
    ) -> Left {
        let upward = self.is_upward(rule);
        let Some(shard) = self.shards.get_mut(hit.key.partition() as usize) else {
            return Left::default();
        };
        let count = shard.count_of(hit.key);
        let quota = &rule.quota;
        let (hits, freed, patience) = if upward {
            let unacked = shard.stream.unacked(hit.key, 0).0;
            let room = Room {
                rule,
                key: hit.key,
                count: &count,
                unacked,
                wanted: hit.cost.saturating_mul(HIT),
            };
            let stake = id.and_then(|id| shard.stake(hit.key, id, now));
            let state = self.upstream.state(stake, &room, now);
            let hits = u64::try_from(state.room).unwrap_or(0) / HIT;
            (hits, state.freed, state.wait)
        } else {
            let freed = count.freed_per_second(quota, now);
            (count.remaining(quota, now), freed, Micros::ZERO)
        };
        let lent = shard.lent_or_kept(hit.key, freed, reserve, now);
        Left {
            count,
            hits,
            lent: lent.div_ceil(HIT),
            patience,
        }
    }

    /// Takes note of what was asked of a key that others spend from, too.
    fn note_demand(&mut self, rule: &Rule, hit: &Hit, left: u64, now: Timestamp) {
        if !self.is_upward(rule) {
            return;
        }
        if let Some(shard) = self.shards.get_mut(hit.key.partition() as usize) {
            let free = i64::try_from(left.saturating_mul(HIT)).unwrap_or(i64::MAX);
            let demand = Demand {
                offered: hit.cost,
                lacking: hit.cost.saturating_sub(left),
                exceeded: false,
                free,
            };
            self.upstream.note(shard, hit.key, rule, demand, now);
        }
    }

    /// How long a key is still denied because its limit was exceeded.
    fn punished(&mut self, rule: &Rule, key: CounterKey, now: Timestamp) -> Micros {
        let shard = self.shards.get_mut(key.partition() as usize);
        shard
            .and_then(|shard| shard.loans.find(key))
            .map_or(Micros::ZERO, |loans| loans.punished(rule.penalty, now))
    }

    /// A limit was exceeded: its rule may say that this is to be felt for longer,
    /// and by the whole fleet.
    fn punish(&mut self, query: &Query, decision: &Decision, now: Timestamp) {
        let hit = query.hits.iter().find(|hit| hit.rule == decision.rule);
        let (Some(hit), Some(rule)) = (hit, query.rules.rule(decision.rule)) else {
            return;
        };
        if rule.penalty == Micros::ZERO {
            return;
        }
        if let Some(shard) = self.shards.get_mut(hit.key.partition() as usize) {
            let Some(loans) = shard.loans.of(hit.key) else {
                return;
            };
            let anew = loans.punish(rule.penalty, now);
            if anew && loans.note_crowd(now) {
                self.crowd.add(hit.key, now);
            }
            let demand = Demand {
                exceeded: anew,
                free: i64::MAX,
                ..Demand::default()
            };
            self.upstream.note(shard, hit.key, rule, demand, now);
        }
    }

    fn spend(&mut self, query: &Query, hit: &Hit, now: Timestamp, journal: &mut dyn Journal) {
        let (Some(rule), Some(shard)) = (
            query.rules.id(hit.rule),
            self.shards.get_mut(hit.key.partition() as usize),
        ) else {
            return;
        };
        let group = CountGroup {
            rule: rule.0,
            window: 0,
            keys: Vec::from(hit.key.to_bytes()).into(),
            hits: Vec::from([hit.cost]),
            ..CountGroup::default()
        };
        let batch = Batch {
            partition: hit.key.partition(),
            groups: Vec::from([group]),
            ..Batch::default()
        };
        let forwarding = self.upstream.forwarding(now);
        let record = Record::counted(0, batch, forwarding, now);
        shard.contains = journal.append(&record.to_bytes());
        if let Some(batch) = &record.batch {
            shard.count(0, batch, forwarding, &self.kinds, now);
            self.upstream.note_counted(batch, forwarding, &self.kinds);
        }
        if self.claimed.contains(&rule) {
            self.note_spent(query, hit, now);
        }
    }

    /// Tells the sources if little is left now.
    fn note_spent(&mut self, query: &Query, hit: &Hit, now: Timestamp) {
        let Some(rule) = query.rules.rule(hit.rule) else {
            return;
        };
        let fleet = self.fleet(rule, now);
        // Else the aggregator above says so.
        if self.is_upward(rule) {
            return;
        }
        let Some(shard) = self.shards.get_mut(hit.key.partition() as usize) else {
            return;
        };
        let count = shard.count_of(hit.key);
        let room = count.room_micro(&rule.quota, now);
        let freed = count.freed_per_second(&rule.quota, now);
        let Some(loans) = shard.loans.of(hit.key) else {
            return;
        };
        let (lent, covered) = loans.lent_and_covered(freed, now);
        let reserve = crowd::reserve(&rule.quota, fleet);
        let margin = crowd::margin(&rule.quota, reserve, false);
        if crowd::is_crowded(margin, room, lent, covered, reserve) && loans.note_crowd(now) {
            self.crowd.add(hit.key, now);
        }
    }
}

/// What is left of a key.
#[derive(Default)]
struct Left {
    /// What was counted here.
    count: Count,
    /// Hits left, what is lent among them.
    hits: u64,
    /// Hits lent.
    lent: u64,
    /// No answer from above comes sooner.
    patience: Micros,
}

/// When a cost will fit if nobody else comes and what is lent is spent.
fn wait(count: &Count, quota: &Quota, cost: u64, lent: u64, now: Timestamp) -> Option<Micros> {
    if cost > quota.capacity() {
        return None;
    }
    let mut spent = *count;
    spent.add(quota, lent, now);
    spent.retry_after(quota, cost, now)
}
