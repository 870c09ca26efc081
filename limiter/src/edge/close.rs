//! The end of a request: what its response changes of what it has spent.
//!
//! Only rules that say so have a word here, and only a request that spends under one
//! of them is remembered until its response comes.
//!
//! What is given back and was not reported yet is taken out of the next report, and
//! its tokens are there to be lent on by this source: the region has never known of
//! either. What was reported goes to the region, in the window it was counted in,
//! and comes back as leases do. What a response costs more is spent, whether or not
//! there is room: it has happened. It takes the tokens in hand and makes no debt,
//! for the region counts it as soon as it hears of it.

use alloc::sync::Arc;

use smallvec::SmallVec;

use super::{Limiter, entry::Entry, outbox::Delta, table::Slot};
use crate::{
    request::{Hit, Query},
    rule::{Rule, Scope},
    ruleset::RuleSet,
    time::Timestamp,
    window::WindowIndex,
};

/// A response as the rules see it.
pub trait Answered {
    /// Its status.
    fn status(&self) -> u16;
    /// A header's value, by its lower-case name; the first of several.
    fn header(&self, name: &str) -> Option<alloc::vec::Vec<u8>>;
}

/// What an admitted request has spent under rules that its response has a word on.
#[derive(Clone, Debug)]
pub struct Open {
    rules: Arc<RuleSet>,
    at: Timestamp,
    spent: SmallVec<[Spent; 2]>,
}

impl Open {
    /// What it has spent under those rules.
    pub fn hits(&self) -> impl Iterator<Item = &Hit> {
        self.spent.iter().map(|spent| &spent.hit)
    }
}

#[derive(Clone, Copy, Debug)]
struct Spent {
    hit: Hit,
    /// The window it was counted in; 0 if the region's clock was not known.
    window: WindowIndex,
}

impl Limiter {
    /// What is to be handed to [`Self::close`] once the response is there: to be
    /// called right after a request was admitted, with the same `now`. None if its
    /// response changes nothing, as under most rules.
    pub fn open(&self, query: &Query, now: Timestamp) -> Option<Open> {
        if !self.rules.sees_responses() {
            return None;
        }
        let spent: SmallVec<[Spent; 2]> = query
            .hits
            .iter()
            .filter_map(|hit| self.spent(query, *hit, now))
            .collect();
        (!spent.is_empty()).then(|| Open {
            rules: Arc::clone(&self.rules),
            at: now,
            spent,
        })
    }

    fn spent(&self, query: &Query, mut hit: Hit, now: Timestamp) -> Option<Spent> {
        hit.rule = self.rules.by_id(query.rules.id(hit.rule)?)?;
        let rule = self.rules.rule(hit.rule)?;
        // One that there was no room to remember is in no report.
        let known = rule.settles_late() && self.table.find(hit.key).is_some();
        known.then(|| Spent {
            hit,
            window: self.window(rule, now),
        })
    }

    /// Takes in the response to an admitted request.
    pub fn close(&mut self, open: &Open, answered: &impl Answered, now: Timestamp) {
        self.turn = self.turn.wrapping_add(1);
        for spent in &open.spent {
            let Some(rule) = open.rules.rule(spent.hit.rule) else {
                continue;
            };
            let cost = cost(rule, spent.hit.cost, answered);
            let Some(place) = self.place_now(open, spent.hit.rule) else {
                continue;
            };
            let hit = Hit {
                rule: place,
                ..spent.hit
            };
            let known = spent.window != WindowIndex(0);
            let window = match known {
                true => spent.window,
                false => self.window(rule, open.at),
            };
            if let Some(more) = cost.checked_sub(hit.cost).filter(|more| *more > 0) {
                self.spend_more(hit, more, now);
            } else if let Some(back) = hit.cost.checked_sub(cost).filter(|back| *back > 0) {
                self.give_back(hit, window, back, now);
            }
        }
    }

    /// Where the rule stands now; none if it is gone or counts anew.
    fn place_now(&self, open: &Open, rule: usize) -> Option<usize> {
        if Arc::ptr_eq(&open.rules, &self.rules) {
            return Some(rule);
        }
        let place = self.rules.by_id(open.rules.id(rule)?)?;
        let (old, new) = (
            &open.rules.rule(rule)?.quota,
            &self.rules.rule(place)?.quota,
        );
        let same = old.window == new.window && old.algorithm == new.algorithm;
        same.then_some(place)
    }

    /// The window that holds `now`, by the region's clock; 0 while that is not known.
    fn window(&self, rule: &Rule, now: Timestamp) -> WindowIndex {
        let now = self.link.region_time(now);
        now.map_or(WindowIndex(0), |now| rule.quota.window.index(now))
    }

    fn spend_more(&mut self, hit: Hit, more: u64, now: Timestamp) {
        let rules = Arc::clone(&self.rules);
        let (Some(rule), Some(id)) = (rules.rule(hit.rule), rules.id(hit.rule)) else {
            return;
        };
        let (window, region_now) = (self.window(rule, now), self.region_now(now));
        let place = u32::try_from(hit.rule).unwrap_or(u32::MAX);
        let shared = rule.scope != Scope::Pop;
        let slot = self.table.find_or_insert(hit.key, self.turn, now, || {
            Entry::new(hit.key, id, place, shared)
        });
        let Some((slot, entry)) = slot.and_then(|slot| Some((slot, self.table.get_mut(slot)?)))
        else {
            let lost = if shared { more } else { 0 };
            self.stats.untracked = self.stats.untracked.saturating_add(lost);
            return;
        };
        entry.local.add(&own_quota(rule), more, region_now);
        entry.overspend(more);
        let late = entry.report_hits(window, more, false, slot);
        let ask = entry.is_overspent(now);
        self.late.add(late);
        self.mark_dirty(Some(slot), hit.rule, now);
        if ask {
            self.ask(slot);
        }
    }

    fn give_back(&mut self, hit: Hit, window: WindowIndex, back: u64, now: Timestamp) {
        let rules = Arc::clone(&self.rules);
        let (Some(rule), Some(id)) = (rules.rule(hit.rule), rules.id(hit.rule)) else {
            return;
        };
        let (present, region_now) = (self.window(rule, now), self.region_now(now));
        let slot = self.table.find(hit.key);
        let entry = slot.and_then(|slot| self.table.get_mut(slot));
        let returned = match entry {
            Some(entry) => {
                let local = if window == WindowIndex(0) {
                    rule.quota.window.index(region_now)
                } else {
                    window
                };
                entry
                    .local
                    .give_back(&own_quota(rule), local, back, region_now);
                entry.return_hits(window, back, window == present)
            }
            None if rule.scope == Scope::Pop => 0,
            None => back,
        };
        if returned > 0 {
            self.late.add(Some(Delta {
                slot: slot.unwrap_or(Slot::NOWHERE),
                key: hit.key,
                rule: id,
                window,
                hits: 0,
                leaked: 0,
                returned,
            }));
        }
        self.mark_dirty(slot, hit.rule, now);
    }
}

/// What a request costs in all, now that its response is there.
fn cost(rule: &Rule, spent: u64, answered: &impl Answered) -> u64 {
    let status = answered.status();
    if rule.refund.iter().any(|one| one.holds(status)) {
        return 0;
    }
    let header = rule.cost.response_header();
    let header = header.and_then(|name| answered.header(name));
    rule.cost.of_response(header.as_deref()).unwrap_or(spent)
}

/// The quota that a source's own count is kept by.
fn own_quota(rule: &Rule) -> crate::quota::Quota {
    match rule.scope {
        Scope::Pop => rule.quota,
        Scope::Region | Scope::Global => rule.local_quota().unwrap_or(rule.quota),
    }
}
