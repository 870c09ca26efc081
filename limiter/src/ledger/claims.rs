//! What a source says of itself: whether it is well-formed, and what it is lent.

use alloc::vec::Vec;

use super::{
    Ledger, SyncError, crowd,
    lend::{self, HIT, Own, Standing, State, Terms},
    loan::Claim,
    loans::KeyLoans,
    regional,
    shard::keys,
    state,
    told::Told,
    upstream::{Demand, Room},
};
use crate::{
    cold::Fleet,
    key::{CounterKey, PARTITIONS, RuleId},
    rule::{Consistency, Rule, Scope},
    time::{Micros, Timestamp},
    wire::{ClaimGroup, LeaseGroup, SyncRequest},
};

/// Finds what is wrong with a message, before any of it is taken in.
pub(super) fn validate(request: &SyncRequest) -> Result<(), SyncError> {
    for (index, batch) in request.batches.iter().enumerate() {
        let error = |group, what| SyncError {
            part: "batch",
            index,
            group,
            what,
        };
        if batch.partition >= PARTITIONS {
            return Err(error(0, "there is no such partition"));
        }
        for (place, group) in batch.groups.iter().enumerate() {
            let columns = [&group.hits, &group.leaked, &group.returned];
            fits(&group.keys, &columns).map_err(|what| error(place, what))?;
            if keys(&group.keys).any(|key| key.partition() != batch.partition) {
                return Err(error(place, "a key belongs to another partition"));
            }
        }
    }
    for (index, group) in request.claims.iter().enumerate() {
        let columns = [
            &group.held_micro,
            &group.unreported,
            &group.offered,
            &group.wanted,
            &group.waiting,
            &group.exceeded,
        ];
        fits(&group.keys, &columns).map_err(|what| SyncError {
            part: "claim",
            index,
            group: 0,
            what,
        })?;
    }
    Ok(())
}

fn fits(keys: &[u8], columns: &[&Vec<u64>]) -> Result<(), &'static str> {
    let (keys, rest) = keys.as_chunks::<16>();
    if !rest.is_empty() {
        return Err("the keys are not a multiple of 16 bytes");
    }
    if columns
        .iter()
        .any(|column| !column.is_empty() && column.len() != keys.len())
    {
        return Err("a column has another length than the keys: leave it out or fill it");
    }
    Ok(())
}

impl Ledger {
    /// Answers claims: one lease group for each claim group whose rule is known.
    pub(super) fn lend(&mut self, request: &SyncRequest, now: Timestamp) -> Vec<LeaseGroup> {
        let mut leases = Vec::with_capacity(request.claims.len());
        for group in &request.claims {
            let mut lease = LeaseGroup {
                rule: group.rule,
                ..LeaseGroup::default()
            };
            let rules = self.rules.clone();
            let rule = self
                .kinds
                .of_rule(RuleId(group.rule))
                .and_then(|(_, at)| rules.rule(at));
            let Some(rule) = rule else {
                continue;
            };
            self.claimed.insert(RuleId(group.rule));
            let at = Claimed {
                rule,
                id: RuleId(group.rule),
                fleet: self.fleet(rule, now),
                upward: self.is_upward(rule),
            };
            let mut answered = Vec::with_capacity(group.keys.len());
            for (place, key) in keys(&group.keys).enumerate() {
                let claim = claim(request, group, place);
                if let Some((told, terms)) = self.answer(&at, key, &claim, now) {
                    answered.extend_from_slice(&key.to_bytes());
                    told.push(&mut lease, &terms);
                }
            }
            lease.keys = answered.into();
            for column in [&mut lease.penalty_ms, &mut lease.retry_ms] {
                if column.iter().all(|value| *value == 0) {
                    column.clear();
                }
            }
            leases.push(lease);
        }
        leases
    }

    fn answer(
        &mut self,
        at: &Claimed<'_>,
        key: CounterKey,
        claim: &Claim,
        now: Timestamp,
    ) -> Option<(Told, Terms)> {
        let rule = at.rule;
        let (mut state, told) = self.standing_of(at, key, claim, now)?;
        let shard = self.shards.get_mut(key.partition() as usize)?;
        let mut aside = KeyLoans::default();
        let (loans, on_record) = match shard.loans.of(key) {
            Some(loans) => (loans, true),
            None => (&mut aside, false),
        };
        let punished_anew = claim.exceeded && loans.punish(rule.penalty, now);
        if punished_anew && on_record && loans.note_crowd(now) {
            self.crowd.add(key, now);
        }
        let penalty = loans.punished(rule.penalty, now);
        let quota = &rule.quota;
        let (lent, covered) = loans.lent_and_covered(state.freed, now);
        let reserve = crowd::reserve(quota, at.fleet);
        let margin = crowd::margin(quota, reserve, at.upward);
        let is_crowded = crowd::is_crowded(margin, state.room, lent, covered, reserve);
        if is_crowded && on_record && loans.note_crowd(now) {
            self.crowd.add(key, now);
        }
        if !loans.is_known_crowded(now) {
            let own = crowd::own_reserve(quota, at.fleet, claim);
            state.reserve = reserve.saturating_sub(own);
        }
        let mut terms = if rule.consistency == Consistency::Edge {
            lend::told(penalty)
        } else {
            loans.answer(claim, state.freed, now, |standing| {
                terms(rule, &state, standing, claim, penalty, on_record)
            })?
        };
        if at.upward {
            terms.quiet = terms.quiet.min(state.wait);
            let lacking = claim.wanted.saturating_sub(terms.tokens);
            let lent = i64::try_from(lent).unwrap_or(i64::MAX);
            let demand = Demand {
                offered: claim.offered / HIT,
                lacking: lacking.div_ceil(HIT),
                exceeded: punished_anew,
                free: state.room.saturating_sub(lent),
            };
            self.upstream.note(shard, key, rule, demand, now);
        }
        Some((told, terms))
    }

    /// What there is of a key, and what a client is told of it.
    fn standing_of(
        &mut self,
        at: &Claimed<'_>,
        key: CounterKey,
        claim: &Claim,
        now: Timestamp,
    ) -> Option<(State, Told)> {
        let rule = at.rule;
        let shard = self.shards.get_mut(key.partition() as usize)?;
        let count = shard.count_of(key);
        let mut told = Told::by_the_books(rule, &count, claim, now);
        let mut state = if at.upward {
            let unacked = shard.stream.unacked(key, 0).0;
            let stake = shard.stake(key, at.id, now);
            if let Some(stake) = &stake {
                told.by_stake(stake, claim, now);
            }
            let room = Room {
                rule,
                key,
                count: &count,
                unacked,
                wanted: claim.wanted,
            };
            self.upstream.state(stake, &room, now)
        } else {
            state::by_the_books(rule, &rule.quota, &count, claim.wanted, now)
        };
        if is_short(rule, claim) {
            state.freed = state.limit_rate;
        }
        state.sources = u64::from(at.fleet.sources);
        state.coarse = rule.quota.capacity() < state.sources.saturating_mul(2);
        Some((state, told))
    }

    /// Whether what may be lent under a rule is what the aggregator above lends.
    pub(super) fn is_upward(&self, rule: &Rule) -> bool {
        rule.scope == Scope::Global && self.upstream.is_set()
    }

    /// Who may admit unasked of what a rule limits.
    pub(super) fn fleet(&self, rule: &Rule, now: Timestamp) -> Fleet {
        let fleet = self.sources.fleet(now);
        if rule.scope == Scope::Global {
            let sources = fleet.sources.saturating_mul(self.upstream.regions());
            Fleet { sources, ..fleet }
        } else {
            fleet
        }
    }
}

/// The rule of a group of claims, and how it is kept.
struct Claimed<'a> {
    rule: &'a Rule,
    id: RuleId,
    /// Who may admit unasked of what it limits.
    fleet: Fleet,
    /// Whether what may be lent is what the aggregator above lends.
    upward: bool,
}

/// Whether a window is over before the answers of the region that makes a claim.
const fn is_short(rule: &Rule, claim: &Claim) -> bool {
    claim.region && rule.quota.is_short(claim.round_trip)
}

/// The terms of a loan under a rule that sources lease.
fn terms(
    rule: &Rule,
    state: &State,
    standing: &Standing,
    claim: &Claim,
    penalty: Micros,
    on_record: bool,
) -> Terms {
    let own = own(claim);
    if penalty > Micros::ZERO {
        lend::punished(state, standing, penalty)
    } else if is_short(rule, claim) {
        regional::by_rate(state, standing, &own, &rule.quota)
    } else if claim.region {
        regional::terms(state, standing, &own, claim.round_trip)
    } else if rule.consistency == Consistency::Exact || !on_record {
        lend::exact(state, standing, &own)
    } else {
        lend::terms(state, standing, &own)
    }
}

const fn own(claim: &Claim) -> Own {
    Own {
        held: claim.held,
        unreported: claim.unreported,
        wanted: claim.wanted,
        offered: claim.offered,
    }
}

fn claim(request: &SyncRequest, group: &ClaimGroup, place: usize) -> Claim {
    let value = |column: &Vec<u64>| column.get(place).copied().unwrap_or(0);
    let hits = |column: &Vec<u64>| value(column).saturating_mul(HIT);
    Claim {
        source: request.source,
        message: request.message,
        held: value(&group.held_micro),
        unreported: hits(&group.unreported),
        offered: hits(&group.offered),
        wanted: hits(&group.wanted),
        waiting: hits(&group.waiting),
        impatient: request.impatient,
        region: request.sources > 0,
        round_trip: Micros::new(request.round_trip_us),
        exceeded: value(&group.exceeded) > 0,
    }
}
