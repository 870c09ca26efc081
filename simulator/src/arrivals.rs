//! Which requests arrive, when and where.

use std::collections::VecDeque;

use limiter::time::{Micros, Timestamp};

use crate::{
    chance::{Chance, Purpose},
    scenario::Traffic,
    setup::{Setup, seconds},
};

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Timestamp,
    pub(crate) source: usize,
    pub(crate) key: usize,
}

/// All requests of a run, in order: a Poisson process, and the bursts on top.
pub(crate) struct Arrivals {
    chance: Chance,
    start: Timestamp,
    end: Timestamp,
    rate_per_s: f64,
    elapsed_s: f64,
    sources: usize,
    popularity: Popularity,
    dwell: Option<Dwell>,
    bursts: Option<Bursts>,
    background: Option<Arrival>,
}

/// The source that has all the traffic.
struct Dwell {
    length: Micros,
    until: Timestamp,
    source: usize,
}

struct Bursts {
    every: Micros,
    size: u64,
    next: Timestamp,
    waiting: VecDeque<Arrival>,
}

/// How often each key is asked for.
enum Popularity {
    Even(usize),
    /// Shares of the keys, each with those before it.
    Cumulative(Vec<f64>),
}

impl Arrivals {
    /// The requests of a run.
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut arrivals = Self {
            chance: Chance::new(setup.seed, Purpose::Arrivals),
            start: setup.start,
            end: setup.end(),
            rate_per_s: setup
                .rules
                .first()
                .map_or(1.0, |rule| setup.traffic.rate_per_s(&rule.quota)),
            elapsed_s: 0.0,
            sources: setup.sources(),
            popularity: Popularity::of(setup),
            dwell: Dwell::of(setup),
            bursts: Bursts::of(setup),
            background: None,
        };
        arrivals.background = arrivals.draw();
        arrivals
    }

    fn draw(&mut self) -> Option<Arrival> {
        self.elapsed_s += self.chance.gap_s(self.rate_per_s);
        let at = self.start.after(seconds(self.elapsed_s));
        (at < self.end).then(|| Arrival {
            at,
            source: self.source(at),
            key: self.popularity.draw(&mut self.chance),
        })
    }

    fn source(&mut self, at: Timestamp) -> usize {
        match &mut self.dwell {
            Some(dwell) => dwell.at(at, self.sources, &mut self.chance),
            None => self.chance.place(self.sources),
        }
    }

    /// Draws the burst that begins before anything else happens, if one does.
    fn burst(&mut self) -> bool {
        let Some(bursts) = &mut self.bursts else {
            return false;
        };
        let at = bursts.next;
        let later = |arrival: Option<&Arrival>| arrival.is_none_or(|arrival| at <= arrival.at);
        let due = at < self.end && later(self.background.as_ref());
        if due && later(bursts.waiting.front()) {
            let source = self.chance.place(self.sources);
            bursts.draw(source, &self.popularity, &mut self.chance, self.end);
            return true;
        }
        false
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        while self.burst() {}
        let waiting = self.bursts.as_mut().map(|bursts| &mut bursts.waiting);
        if let Some(waiting) = waiting
            && let Some(first) = waiting.front().copied()
            && self.background.is_none_or(|other| first.at < other.at)
        {
            waiting.pop_front();
            return Some(first);
        }
        let arrival = self.background.take()?;
        self.background = self.draw();
        Some(arrival)
    }
}

impl Dwell {
    fn of(setup: &Setup) -> Option<Self> {
        let Traffic::Moving { dwell_s, .. } = setup.traffic else {
            return None;
        };
        Some(Self {
            length: seconds(dwell_s).max(Micros::new(1)),
            until: setup.start,
            source: 0,
        })
    }

    /// Moves on, always to another source, as often as `at` asks.
    fn at(&mut self, at: Timestamp, sources: usize, chance: &mut Chance) -> usize {
        while self.until <= at {
            let step = 1 + chance.place(sources.saturating_sub(1));
            self.source = (self.source + step) % sources;
            self.until = self.until.after(self.length);
        }
        self.source
    }
}

impl Bursts {
    fn of(setup: &Setup) -> Option<Self> {
        let Traffic::Burst {
            burst_every_s,
            burst_size,
            ..
        } = setup.traffic
        else {
            return None;
        };
        let every = seconds(burst_every_s).max(Micros::new(1));
        Some(Self {
            every,
            size: burst_size,
            next: setup.start.after(every),
            waiting: VecDeque::new(),
        })
    }

    fn draw(&mut self, source: usize, keys: &Popularity, chance: &mut Chance, end: Timestamp) {
        for _ in 0..self.size {
            let at = self.next.after(chance.within(Micros::from_secs(1)));
            let key = keys.draw(chance);
            if at < end {
                self.waiting.push_back(Arrival { at, source, key });
            }
        }
        self.waiting
            .make_contiguous()
            .sort_by_key(|arrival| arrival.at);
        self.next = self.next.after(self.every);
    }
}

impl Popularity {
    fn of(setup: &Setup) -> Self {
        let Traffic::Zipf { exponent, .. } = setup.traffic else {
            return Self::Even(setup.keys);
        };
        let mut sum = 0.0;
        let mut place = 0.0;
        let shares = (0..setup.keys).map(|_| {
            place += 1.0;
            sum += libm::pow(place, -exponent);
            sum
        });
        Self::Cumulative(shares.collect())
    }

    fn draw(&self, chance: &mut Chance) -> usize {
        match self {
            Self::Even(1) => 0,
            Self::Even(keys) => chance.place(*keys),
            Self::Cumulative(shares) => {
                let all = shares.last().copied().unwrap_or_default();
                let drawn = chance.unit() * all;
                let place = shares.partition_point(|share| *share <= drawn);
                place.min(shares.len().saturating_sub(1))
            }
        }
    }
}
