//! A source as a host drives it: its clock, what it holds back, and what it
//! has under way.

use limiter::{
    decision::Verdict,
    edge::{Identity, Limiter},
    time::Timestamp,
};

use crate::{chance::Chance, plan::Plan, response::Response, setup::Setup};

/// A wake-up that is not wanted.
const NEVER: Timestamp = Timestamp::from_micros(u64::MAX);

/// One source.
pub(crate) struct Source {
    pub(crate) limiter: Limiter,
    pub(crate) pop: usize,
    pub(crate) region: usize,
    pub(crate) held: Vec<Held>,
    /// The earliest wake-up that is in the queue.
    pub(crate) wake: Option<Timestamp>,
    /// Which of its lives: what a life had under way ends with it.
    pub(crate) life: u64,
    /// Messages that have neither been answered nor given up.
    under_way: Vec<u64>,
    skew: i64,
    tickets: u64,
    number: u64,
    seeds: [u64; 4],
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) ticket: u64,
    pub(crate) key: usize,
    /// When its patience ends.
    pub(crate) until: Timestamp,
    /// What it will be answered, if it is admitted and a rule cares.
    pub(crate) response: Option<Response>,
}

impl Source {
    /// The source at this place, as one that has been up: it has the rules, but
    /// has never heard from the region.
    pub(crate) fn new(place: usize, setup: &Setup, plan: &Plan, chance: &mut Chance) -> Self {
        let pop = place / setup.workers_per_pop;
        let number = chance.number();
        let seeds = std::array::from_fn(|_| chance.number());
        let limiter = limiter(number, pop, seeds, setup.start, setup, plan);
        Self {
            number,
            seeds,
            limiter,
            pop,
            region: setup.region_of(pop),
            held: Vec::new(),
            wake: None,
            life: 0,
            under_way: Vec::new(),
            skew: setup.skews.get(pop).copied().unwrap_or_default(),
            tickets: 0,
        }
    }

    /// Forgets everything, and begins a new life.
    pub(crate) fn rebirth(&mut self, now: Timestamp, setup: &Setup, plan: &Plan) {
        self.limiter = limiter(self.number, self.pop, self.seeds, now, setup, plan);
        self.life += 1;
        self.held.clear();
        self.under_way.clear();
    }

    /// An instant by its own clock.
    pub(crate) const fn local(&self, now: Timestamp) -> Timestamp {
        now.offset_by(self.skew)
    }

    /// An instant of its own clock by the true one.
    pub(crate) const fn truly(&self, local: Timestamp) -> Timestamp {
        local.offset_by(-self.skew)
    }

    /// Holds a request back. Returns its ticket.
    pub(crate) fn hold(
        &mut self,
        key: usize,
        response: Option<Response>,
        until: Timestamp,
    ) -> Held {
        self.tickets += 1;
        let held = Held {
            ticket: self.tickets,
            key,
            until,
            response,
        };
        self.held.push(held);
        held
    }

    /// Takes out the request with this ticket if its patience has ended.
    pub(crate) fn give_up(&mut self, ticket: u64, now: Timestamp) -> Option<Held> {
        let waits = |held: &Held| held.ticket == ticket && held.until <= now;
        let place = self.held.iter().position(waits)?;
        Some(self.held.remove(place))
    }

    /// A message has left.
    pub(crate) fn sent(&mut self, id: u64) {
        self.under_way.push(id);
    }

    /// A message has been answered or given up. False if it had been before:
    /// a transport reports one outcome.
    pub(crate) fn done(&mut self, id: u64) -> bool {
        let place = self.under_way.iter().position(|other| *other == id);
        place
            .map(|place| self.under_way.swap_remove(place))
            .is_some()
    }

    /// When it wants to be woken, by the true clock; none: not at all.
    pub(crate) fn timeout(&self) -> Option<Timestamp> {
        let local = self.limiter.poll_timeout();
        (local < NEVER).then(|| self.truly(local))
    }
}

/// A limiter at the start of one of its lives.
fn limiter(
    source: u64,
    pop: usize,
    seeds: [u64; 4],
    born: Timestamp,
    setup: &Setup,
    plan: &Plan,
) -> Limiter {
    let identity = Identity {
        source,
        epoch: born.as_micros(),
        pop: format!("pop-{pop}"),
    };
    let mut limiter = Limiter::new(identity, setup.settings(seeds));
    limiter.set_rules(plan.rules.clone());
    limiter
}

/// When a held request's patience ends, by the source's clock.
pub(crate) const fn held_until(verdict: &Verdict) -> Option<Timestamp> {
    match verdict {
        Verdict::Hold { until } => Some(*until),
        Verdict::Pass | Verdict::Allow(_) | Verdict::Deny(_) => None,
    }
}
