//! What the region has lent, and to whom.
//!
//! A loan is what one source may admit of one key without asking. Until it is
//! accounted for it counts as spent. It is not on record: a loan that a crash
//! forgets expires at its source within seconds.

use ahash::RandomState;
use alloc::vec::Vec;
use hashbrown::{HashTable, hash_table::Entry};

use super::{
    fair::{ample, level, share},
    lend::{Standing, Terms},
    loan::{Claim, Loan, Traffic},
    sums::Sums,
};
use crate::{
    cold,
    key::CounterKey,
    time::{Micros, Timestamp},
};

/// How long a key that fell short counts as contested.
const CONTESTED: Micros = Micros::from_secs(60);

/// How long after the sources were told that a key is crowded they are told
/// again; they remember it for longer.
const TELL_AGAIN: Micros = Micros::from_secs(20);

/// With so many loans on a key or fewer, all are looked at each time.
const FEW: usize = 32;

/// What is lent of one key, and what its traffic has been like.
#[derive(Default)]
pub(super) struct KeyLoans {
    /// Ordered by source.
    loans: Vec<Loan>,
    /// What they come to.
    sums: Sums,
    /// When more was last wanted than there was.
    short: Option<Timestamp>,
    /// When the sources were first told that the key is crowded, of the times
    /// that they have not forgotten since.
    told_first: Option<Timestamp>,
    /// When they were last told.
    told: Option<Timestamp>,
    punished: Penalty,
}

/// The time for which a key is denied because its limit was exceeded.
#[derive(Clone, Copy, Default)]
struct Penalty {
    since: Timestamp,
    until: Timestamp,
}

/// All loans of a partition.
pub(super) struct Loans {
    by_key: HashTable<(CounterKey, KeyLoans)>,
    hash: RandomState,
    /// The place that is swept next.
    hand: usize,
    keys_max: usize,
    /// Claims of keys that there was no room for.
    pub(super) unrecorded: u64,
}

/// Places looked at in one sweep: a millisecond or two.
const SWEPT: usize = 4_096;

impl Loans {
    pub(super) const fn new(hash: RandomState) -> Self {
        Self {
            by_key: HashTable::new(),
            hash,
            hand: 0,
            keys_max: usize::MAX,
            unrecorded: 0,
        }
    }

    /// Holds loans on no more keys than this from now on.
    pub(super) const fn set_keys_max(&mut self, keys_max: usize) {
        self.keys_max = keys_max;
    }

    /// The loans on a key; none if there are none and there is no room for any.
    pub(super) fn of(&mut self, key: CounterKey) -> Option<&mut KeyLoans> {
        if self.by_key.len() >= self.keys_max && self.find(key).is_none() {
            self.unrecorded = self.unrecorded.saturating_add(1);
            return None;
        }
        let hash = &self.hash;
        let entry = self.by_key.entry(
            hash.hash_one(key.0),
            |(other, _)| *other == key,
            |(other, _)| hash.hash_one(other.0),
        );
        let (_, state) = match entry {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(place) => place.insert((key, KeyLoans::default())).into_mut(),
        };
        Some(state)
    }

    /// The loans on a key, if there were any lately.
    pub(super) fn find(&mut self, key: CounterKey) -> Option<&mut KeyLoans> {
        let hash = self.hash.hash_one(key.0);
        let found = self.by_key.find_mut(hash, |(other, _)| *other == key);
        found.map(|(_, state)| state)
    }

    /// Millionths of hits of a key that are lent and not accounted for.
    pub(super) fn lent(&self, key: CounterKey, now: Timestamp) -> u64 {
        let found = self
            .by_key
            .find(self.hash.hash_one(key.0), |(other, _)| *other == key);
        found.map_or(0, |(_, state)| {
            let lent = state.loans.iter().map(|loan| loan.lent(now));
            lent.fold(0, u64::saturating_add)
        })
    }

    /// Forgets loans that are over, some places at a time. Returns whether it
    /// has come to the end of them.
    pub(super) fn sweep(&mut self, now: Timestamp) -> bool {
        let end = self.hand.saturating_add(SWEPT);
        for place in self.hand..end.min(self.by_key.num_buckets()) {
            let Ok(mut entry) = self.by_key.get_bucket_entry(place) else {
                continue;
            };
            let (_, state) = entry.get_mut();
            if state.is_over(now) {
                entry.remove();
            }
        }
        let done = end >= self.by_key.num_buckets();
        self.hand = if done { 0 } else { end };
        done
    }
}

impl KeyLoans {
    /// Answers a claim: finds what it has to be weighed against, has `decide`
    /// name the terms, and notes the loan. None if a later message of the source
    /// has been answered already.
    pub(super) fn answer(
        &mut self,
        claim: &Claim,
        freed: u64,
        now: Timestamp,
        decide: impl FnOnce(&Standing) -> Terms,
    ) -> Option<Terms> {
        let place = self.place_of(claim.source);
        let before = place.ok().and_then(|place| self.loans.get(place)).copied();
        if let Some(loan) = before
            && loan.message >= claim.message
        {
            return (loan.message == claim.message).then_some(loan.terms);
        }
        let traffic = Traffic::after(before.as_ref(), claim, now);
        let standing = self.standing(before.as_ref(), traffic, freed, now);
        let terms = decide(&standing);
        let loan = Loan::new(claim, terms, traffic, now);
        self.note(place, before.as_ref(), loan);
        if claim.wanted > terms.tokens {
            self.short = Some(now);
        }
        Some(terms)
    }

    /// Forgets loans that are over; whether nothing is left to remember.
    fn is_over(&mut self, now: Timestamp) -> bool {
        let before = self.loans.len();
        self.loans.retain(|loan| !loan.is_over(now));
        if self.loans.len() != before {
            self.sums = Sums::default();
        }
        let remembers = self.contested(now) || self.told(now, cold::REMINDER);
        self.loans.is_empty() && !remembers && self.punished.until <= now
    }

    /// How long every request is still denied, by a rule with this penalty.
    pub(super) fn punished(&self, penalty: Micros, now: Timestamp) -> Micros {
        let Penalty { since, until } = self.punished;
        until.min(since.after(penalty)).since(now)
    }

    /// The limit was exceeded: every request is denied from now on, for so long,
    /// unless that is so already. Returns whether it was not.
    pub(super) fn punish(&mut self, penalty: Micros, now: Timestamp) -> bool {
        let anew = penalty > Micros::ZERO && self.punished(penalty, now) == Micros::ZERO;
        if anew {
            self.punished = Penalty {
                since: now,
                until: now.after(penalty),
            };
        }
        anew
    }

    /// Where the loan of a source stands, or where it belongs.
    fn place_of(&self, source: u64) -> Result<usize, usize> {
        self.loans.binary_search_by_key(&source, |loan| loan.source)
    }

    /// Puts a loan in the place of the one before.
    fn note(&mut self, place: Result<usize, usize>, before: Option<&Loan>, loan: Loan) {
        if let Some(before) = before {
            self.sums.remove(before);
        }
        self.sums.add(&loan);
        match place {
            Ok(place) => {
                if let Some(known) = self.loans.get_mut(place) {
                    *known = loan;
                }
            }
            Err(place) => {
                // Most keys have one source.
                if self.loans.is_empty() {
                    self.loans.reserve_exact(1);
                }
                self.loans.insert(place.min(self.loans.len()), loan);
            }
        }
    }

    /// What a claim is weighed against.
    fn standing(
        &mut self,
        before: Option<&Loan>,
        traffic: Traffic,
        freed: u64,
        now: Timestamp,
    ) -> Standing {
        self.refresh(freed, now);
        let mut others = self.sums;
        if let Some(before) = before {
            others.remove(before);
        }
        let Traffic {
            demand,
            impatient,
            region,
        } = traffic;
        let own = ample(demand, region);
        let rate = if others.ample.saturating_add(own) <= freed {
            share(freed, own, others.ample.saturating_add(own))
        } else {
            own.min(self.level(before, own, freed, now))
        };
        Standing {
            lent: others.lent_at(now),
            covered: others.covered,
            idle: others.idle,
            rates: others.rates,
            rate,
            demand,
            impatient,
            turn: before.map_or(Micros::ZERO, |loan| loan.quiet(now)),
            all_demand: others.demand.saturating_add(demand),
            contested: self.contested(now),
            sources: others.loans.saturating_add(1),
        }
    }

    /// Looks at all loans anew: each time while they are few, and now and then
    /// when they are many.
    fn refresh(&mut self, freed: u64, now: Timestamp) {
        if self.loans.len() > FEW && self.sums.is_fresh(now) {
            return;
        }
        self.sums = Sums::of(&self.loans, now);
        if self.loans.len() > FEW {
            let loans = &self.loans;
            self.sums.level = level(freed, || loans.iter().map(|loan| loan.ample(now)));
        }
    }

    /// How much of what becomes free a source can have at the most.
    fn level(&self, before: Option<&Loan>, own: u64, freed: u64, now: Timestamp) -> u64 {
        if self.loans.len() > FEW {
            return self.sums.level;
        }
        let source = before.map(|loan| loan.source);
        level(freed, || {
            let others = self.loans.iter();
            let others = others.filter(|loan| Some(loan.source) != source && !loan.is_over(now));
            others.map(|loan| loan.ample(now)).chain([own])
        })
    }

    /// Whether more has been wanted lately than there was.
    fn contested(&self, now: Timestamp) -> bool {
        self.short.is_some_and(|short| now.since(short) < CONTESTED)
    }

    fn told(&self, now: Timestamp, within: Micros) -> bool {
        self.told.is_some_and(|told| now.since(told) < within)
    }

    /// Notes that the key is crowded. Returns whether the sources have to be told
    /// (again).
    pub(super) fn note_crowd(&mut self, now: Timestamp) -> bool {
        if self.told(now, TELL_AGAIN) {
            return false;
        }
        if !self.told(now, cold::REMINDER) {
            self.told_first = Some(now);
        }
        self.told = Some(now);
        true
    }

    /// Whether every source must know that the key is, or was, crowded.
    pub(super) fn is_known_crowded(&self, now: Timestamp) -> bool {
        let heard = self
            .told_first
            .is_some_and(|first| now.since(first) >= cold::NOTICE);
        heard && self.told(now, cold::REMINDER)
    }

    /// What is lent, and how much of that covers what could be admitted unasked.
    pub(super) fn lent_and_covered(&mut self, freed: u64, now: Timestamp) -> (u64, u64) {
        self.refresh(freed, now);
        (self.sums.lent_at(now), self.sums.covered)
    }
}
