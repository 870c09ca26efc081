//! What the region has lent, and to whom.
//!
//! A loan is what one source may admit of one key without asking. Until it is
//! accounted for it counts as spent. It is not on record: a loan that a crash
//! forgets expires at its source within seconds.

use ahash::RandomState;
use alloc::vec::Vec;
use hashbrown::{HashTable, hash_table::Entry};

use super::lend::{Standing, Terms};
use crate::{
    cold,
    key::CounterKey,
    time::{Micros, Timestamp},
};

/// How long after its expiry a loan still counts as spent: a source reports what
/// it spent within a flush interval, and once more if the report is lost.
pub(super) const GRACE: Micros = Micros::from_millis(2_500);

/// How fast an estimate of demand follows what is reported.
const DEMAND_MEMORY: Micros = Micros::from_millis(1_500);

/// Steps towards the fair level; each leaves out those who want less than it.
const LEVELLINGS: usize = 4;

/// How long a key that fell short counts as contested.
const CONTESTED: Micros = Micros::from_secs(60);

/// How long after the sources were told that a key is crowded they are told
/// again; they remember it for longer.
const TELL_AGAIN: Micros = Micros::from_secs(20);

/// How long the requests of a first claim are taken to have been coming.
const FIRST_SEEN: Micros = Micros::from_secs(2);

/// So many hits expected and none asked for: the traffic has gone elsewhere.
const SURPRISE: u64 = 3_000_000;

/// What one source holds of one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loan {
    source: u64,
    /// The message that was answered with it.
    message: u64,
    /// When it was made.
    at: Timestamp,
    /// What it allows.
    pub(super) terms: Terms,
    /// Millionths of hits admitted and not yet in the books.
    unreported: u64,
    /// What the source still held of the loan before, in millionths.
    held: u64,
    /// What requests were waiting for, in millionths.
    waiting: u64,
    /// Millionths of hits asked for each second.
    demand: u64,
}

/// A source's claim on a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claim {
    pub(super) source: u64,
    pub(super) message: u64,
    /// Millionths of a hit, as all amounts here.
    pub(super) held: u64,
    pub(super) unreported: u64,
    pub(super) offered: u64,
    pub(super) wanted: u64,
    pub(super) waiting: u64,
}

/// What is lent of one key, and what its traffic has been like.
#[derive(Default)]
pub(super) struct KeyLoans {
    loans: Vec<Loan>,
    /// The recall it was made after.
    recalls: u32,
    /// When more was last wanted than there was.
    short: Option<Timestamp>,
    /// Since when half the limit has been spent.
    crowded: Option<Timestamp>,
    /// When the sources were last told so.
    told: Option<Timestamp>,
}

/// All loans of a partition.
pub(super) struct Loans {
    by_key: HashTable<(CounterKey, KeyLoans)>,
    hash: RandomState,
    /// How often all loans were recalled. Those made before are over, and go
    /// when their key comes again or is swept: there may be too many to forget
    /// at once.
    recalls: u32,
    /// The place that is swept next.
    hand: usize,
}

/// Places looked at in one sweep: a millisecond or two.
const SWEPT: usize = 4_096;

impl Loans {
    pub(super) const fn new(hash: RandomState) -> Self {
        Self {
            by_key: HashTable::new(),
            hash,
            recalls: 0,
            hand: 0,
        }
    }

    /// The loans on a key.
    pub(super) fn of(&mut self, key: CounterKey) -> &mut KeyLoans {
        let (hash, recalls) = (&self.hash, self.recalls);
        let fresh = || KeyLoans {
            recalls,
            ..KeyLoans::default()
        };
        let entry = self.by_key.entry(
            hash.hash_one(key.0),
            |(other, _)| *other == key,
            |(other, _)| hash.hash_one(other.0),
        );
        let (_, state) = match entry {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(place) => place.insert((key, fresh())).into_mut(),
        };
        if state.recalls != recalls {
            *state = fresh();
        }
        state
    }

    /// Millionths of hits of a key that are lent and not accounted for.
    pub(super) fn lent(&self, key: CounterKey, now: Timestamp) -> u64 {
        let found = self
            .by_key
            .find(self.hash.hash_one(key.0), |(other, _)| *other == key);
        let standing = found.filter(|(_, state)| state.recalls == self.recalls);
        standing.map_or(0, |(_, state)| {
            state
                .loans
                .iter()
                .fold(0, |sum: u64, loan| sum.saturating_add(loan.lent(now)))
        })
    }

    /// Forgets all loans of every key: new rules, new terms.
    pub(super) const fn recall(&mut self) {
        self.recalls = self.recalls.wrapping_add(1);
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
            if state.recalls != self.recalls || state.is_over(now) {
                entry.remove();
            }
        }
        let done = end >= self.by_key.num_buckets();
        self.hand = if done { 0 } else { end };
        done
    }
}

impl Loan {
    const fn new(claim: &Claim, terms: Terms, demand: u64, now: Timestamp) -> Self {
        Self {
            source: claim.source,
            message: claim.message,
            at: now,
            terms,
            unreported: claim.unreported,
            held: claim.held,
            waiting: claim.waiting,
            demand,
        }
    }

    /// The most that can have been admitted on it and is not in the books.
    pub(super) fn lent(&self, now: Timestamp) -> u64 {
        if self.is_over(now) {
            return 0;
        }
        let lasted = now.since(self.at).min(self.terms.ttl);
        self.unreported
            .saturating_add(self.terms.tokens)
            .saturating_add(per_second(self.terms.rate, lasted))
    }

    /// What its source has likely not spent yet: of a rate, what it had not spent
    /// last time either; of tokens, those that nobody was waiting for and that
    /// its demand has not come to since.
    fn idle(&self, now: Timestamp) -> u64 {
        if !self.is_live(now) {
            return 0;
        }
        if self.terms.rate > 0 {
            return self.held.min(self.terms.tokens);
        }
        let spent = per_second(self.demand, now.since(self.at)).saturating_add(self.waiting);
        self.terms.tokens.saturating_sub(spent)
    }

    fn is_live(&self, now: Timestamp) -> bool {
        now.since(self.at) < self.terms.ttl
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.at) >= self.terms.ttl.plus(GRACE)
    }

    /// The demand of its source, which fades when it is not heard of.
    fn demand(&self, now: Timestamp) -> u64 {
        let silent = now.since(self.at).get();
        let patience = DEMAND_MEMORY.get();
        if silent <= patience {
            self.demand
        } else {
            share(self.demand, patience, silent)
        }
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
        let contested = self.contested(now);
        let loans = &mut self.loans;
        let place = loans.iter().position(|loan| loan.source == claim.source);
        let before = place.and_then(|place| loans.get(place)).copied();
        if let Some(loan) = before
            && loan.message >= claim.message
        {
            return (loan.message == claim.message).then_some(loan.terms);
        }
        let demand = demand_after(before.as_ref(), claim, now);
        let mut standing = standing(loans, claim, demand, now);
        standing.rate = fair_rate(loans, claim, demand, freed, now);
        standing.contested = contested;
        let terms = decide(&standing);
        let loan = Loan::new(claim, terms, demand, now);
        match place.and_then(|place| loans.get_mut(place)) {
            Some(known) => *known = loan,
            None => {
                // Most keys have one source.
                if loans.is_empty() {
                    loans.reserve_exact(1);
                }
                loans.push(loan);
            }
        }
        if claim.wanted > terms.tokens {
            self.short = Some(now);
        }
        Some(terms)
    }

    /// Forgets loans that are over; whether nothing is left to remember.
    fn is_over(&mut self, now: Timestamp) -> bool {
        self.loans.retain(|loan| !loan.is_over(now));
        self.loans.is_empty() && !self.contested(now) && !self.told(now)
    }

    /// Whether more has been wanted lately than there was.
    fn contested(&self, now: Timestamp) -> bool {
        self.short.is_some_and(|short| now.since(short) < CONTESTED)
    }

    fn told(&self, now: Timestamp) -> bool {
        self.told.is_some_and(|told| now.since(told) < TELL_AGAIN)
    }

    /// Notes whether half the limit is spent. Returns whether the sources have to
    /// be told (again).
    pub(super) fn note_crowd(&mut self, crowded: bool, now: Timestamp) -> bool {
        if !crowded {
            self.crowded = None;
            return false;
        }
        self.crowded.get_or_insert(now);
        let tell = !self.told(now);
        if tell {
            self.told = Some(now);
        }
        tell
    }

    /// Whether every source must have heard that the key is crowded.
    pub(super) fn is_known_crowded(&self, now: Timestamp) -> bool {
        self.crowded
            .is_some_and(|since| now.since(since) >= cold::NOTICE)
    }
}

/// What a claim is weighed against.
fn standing(loans: &[Loan], claim: &Claim, demand: u64, now: Timestamp) -> Standing {
    let mut standing = Standing {
        demand,
        all_demand: demand,
        sources: 1,
        ..Standing::default()
    };
    let others = loans
        .iter()
        .filter(|loan| loan.source != claim.source && !loan.is_over(now));
    for loan in others {
        standing.lent = standing.lent.saturating_add(loan.lent(now));
        standing.idle = standing.idle.saturating_add(loan.idle(now));
        standing.all_demand = standing.all_demand.saturating_add(loan.demand(now));
        standing.sources = standing.sources.saturating_add(1);
        if loan.is_live(now) {
            standing.rates = standing.rates.saturating_add(loan.terms.rate);
        }
    }
    standing
}

/// A source's part of what becomes free each second: as much as anybody's, and
/// no more than it wants (max-min fairness), so that one source's flood takes
/// nothing from a trickle. When nobody wants for anything, in proportion.
fn fair_rate(loans: &[Loan], claim: &Claim, demand: u64, freed: u64, now: Timestamp) -> u64 {
    let others = || {
        let others = loans.iter().filter(|loan| loan.source != claim.source);
        others
            .filter(|loan| !loan.is_over(now))
            .map(|loan| ample(loan.demand(now)))
    };
    let own = ample(demand);
    let all = others().fold(own, u64::saturating_add);
    if all <= freed {
        return share(freed, own, all);
    }
    let mut level = 0;
    for _ in 0..LEVELLINGS {
        let (small, many) = others()
            .chain([own])
            .fold((0_u64, 0_u64), |(small, many), want| {
                if want < level {
                    (small.saturating_add(want), many)
                } else {
                    (small, many + 1)
                }
            });
        let next = freed
            .saturating_sub(small)
            .checked_div(many)
            .unwrap_or(level);
        if next <= level {
            break;
        }
        level = next;
    }
    own.min(level)
}

/// A demand with a quarter to spare: requests do not come evenly.
const fn ample(demand: u64) -> u64 {
    demand.saturating_add(demand / 4)
}

/// The demand of a source, once what it reports is taken in.
fn demand_after(before: Option<&Loan>, claim: &Claim, now: Timestamp) -> u64 {
    let Some(loan) = before else {
        return share(claim.offered, 1_000_000, FIRST_SEEN.get());
    };
    let passed = now.since(loan.at).get();
    let memory = DEMAND_MEMORY.get();
    let expected = per_second(loan.demand, now.since(loan.at));
    if claim.offered == 0 && expected >= SURPRISE {
        return 0;
    }
    let faded = share(loan.demand, memory, memory.saturating_add(passed));
    let fresh = share(claim.offered, 1_000_000, memory.saturating_add(passed));
    faded.saturating_add(fresh)
}

/// `rate` a second, for `span`.
pub(super) fn per_second(rate: u64, span: Micros) -> u64 {
    share(rate, span.get(), 1_000_000)
}

/// `amount × part / whole`, rounded down; nothing of nothing.
pub(super) fn share(amount: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(amount) * u128::from(part);
    u64::try_from(product.checked_div(u128::from(whole)).unwrap_or(0)).unwrap_or(u64::MAX)
}
