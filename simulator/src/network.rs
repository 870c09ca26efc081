//! A network, between the sources and their regions or between those and the
//! aggregator above them: how long a message takes,
//! and whether it arrives.

use limiter::time::{Micros, Timestamp};

use crate::{
    chance::{Chance, Purpose},
    setup::Setup,
};

/// How much later a message comes that others overtake, at most.
pub(crate) const LATE_MAX: Micros = Micros::from_millis(400);

/// How long things take when nothing is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) round_trip: Micros,
    /// How much longer or shorter a round trip may be.
    pub(crate) jitter: Micros,
    /// How long a transport waits for an answer.
    pub(crate) timeout: Micros,
}

/// What is wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) request_rate: f64,
    pub(crate) reply_rate: f64,
    pub(crate) duplicate_rate: f64,
    pub(crate) reorder_rate: f64,
    cuts: Vec<Cut>,
}

/// A time in which nothing arrives.
#[derive(Clone, Debug)]
struct Cut {
    /// For these places.
    pops: Vec<usize>,
    start: Timestamp,
    end: Timestamp,
}

/// Decides about every message.
pub(crate) struct Network {
    path: Path,
    faults: Faults,
    chance: Chance,
    /// From then on nothing goes wrong any more.
    healed_at: Timestamp,
}

impl Faults {
    /// Nothing from or to these places arrives from `start` on, until `end`.
    pub(crate) fn cut(&mut self, pops: Vec<usize>, start: Timestamp, end: Timestamp) {
        self.cuts.push(Cut { pops, start, end });
    }

    /// How much later a message may come that others overtake; twice, for there is an
    /// answer, too.
    pub(crate) fn latest(&self) -> Micros {
        if self.reorder_rate > 0.0 || self.duplicate_rate > 0.0 {
            LATE_MAX.plus(LATE_MAX)
        } else {
            Micros::ZERO
        }
    }

    /// Whether nothing is.
    pub(crate) fn is_none(&self) -> bool {
        let rates = [
            self.request_rate,
            self.reply_rate,
            self.duplicate_rate,
            self.reorder_rate,
        ];
        self.cuts.is_empty() && rates.iter().all(|rate| *rate <= 0.0)
    }

    fn is_cut(&self, pop: usize, now: Timestamp) -> bool {
        self.cuts
            .iter()
            .any(|cut| (cut.start..cut.end).contains(&now) && cut.pops.contains(&pop))
    }
}

impl Network {
    /// The network of a run that sources speak over. It heals when the last request
    /// has arrived.
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            path: setup.path,
            faults: setup.faults.clone(),
            chance: Chance::new(setup.seed, Purpose::Network),
            healed_at: setup.end(),
        }
    }

    /// The one that regions speak over: its places are regions.
    pub(crate) fn upstream(setup: &Setup) -> Self {
        Self {
            path: setup.global.unwrap_or(setup.path),
            faults: setup.global_faults.clone(),
            chance: Chance::new(setup.seed, Purpose::Upstream),
            healed_at: setup.end(),
        }
    }

    /// When a request that leaves a place now reaches the region, and when its
    /// double does.
    pub(crate) fn request(&mut self, pop: usize, now: Timestamp) -> [Option<Timestamp>; 2] {
        let (lost, doubled) = if now < self.healed_at {
            let lost = self.chance.hits(self.faults.request_rate);
            (lost, self.chance.hits(self.faults.duplicate_rate))
        } else {
            (false, false)
        };
        let first = self.arrival(pop, now);
        let double = doubled.then(|| {
            let late = now.after(self.chance.within(LATE_MAX));
            self.arrival(pop, late)
        });
        [first.filter(|_| !lost), double.flatten()]
    }

    /// When a reply that leaves the region now reaches a place.
    pub(crate) fn reply(&mut self, pop: usize, now: Timestamp) -> Option<Timestamp> {
        let lost = now < self.healed_at && self.chance.hits(self.faults.reply_rate);
        self.arrival(pop, now).filter(|_| !lost)
    }

    /// When the transport gives up on what is sent now.
    pub(crate) const fn deadline(&self, now: Timestamp) -> Timestamp {
        now.after(self.path.timeout)
    }

    fn arrival(&mut self, pop: usize, now: Timestamp) -> Option<Timestamp> {
        let mut at = now.after(self.one_way());
        if now < self.healed_at {
            if self.chance.hits(self.faults.reorder_rate) {
                at = at.after(self.chance.within(LATE_MAX));
            }
            if self.faults.is_cut(pop, now) || self.faults.is_cut(pop, at) {
                return None;
            }
        }
        Some(at)
    }

    fn one_way(&mut self) -> Micros {
        let spread = self.chance.within(self.path.jitter.plus(self.path.jitter));
        let trip = self.path.round_trip.plus(spread).get();
        Micros::new(trip.saturating_sub(self.path.jitter.get()) / 2)
    }
}
