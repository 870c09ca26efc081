//! A global ledger, regions under it and their sources, on one clock that goes a
//! millisecond at a time.

use std::{collections::VecDeque, sync::Arc};

use limiter::{
    count::Count,
    decision::Verdict,
    edge::Limiter,
    key::PARTITIONS,
    ledger::{Ledger, Region as Name},
    ruleset::RuleSet,
    time::{Micros, Timestamp},
    wire::SyncRequest,
};
use prost::Message;

use crate::common::{Region, SEEDS, START, query, rules, settings, source};

/// A message on its way, and when it arrives.
struct Carried {
    at: Timestamp,
    id: u64,
    body: Vec<u8>,
}

pub struct Place {
    pub region: Region,
    pub sources: Vec<Limiter>,
    name: String,
    lives: u64,
    up: VecDeque<Carried>,
    down: VecDeque<Carried>,
    /// Nothing gets through, in either direction.
    pub cut: bool,
    pub admitted: u64,
    pub denied: u64,
}

pub struct World {
    pub global: Region,
    pub places: Vec<Place>,
    pub rules: Arc<RuleSet>,
    pub now: Timestamp,
    one_way: Micros,
    exact: Count,
    pub exactly: u64,
    random: u64,
}

impl World {
    /// So many regions, each with so many sources, and its answers from above so late.
    pub fn new(rules: &Arc<RuleSet>, regions: u64, sources: u64, round_trip_ms: u64) -> Self {
        let place = |n: u64| Place::new(n, sources);
        Self {
            global: Region::new(rules, SEEDS),
            places: (0..regions).map(place).collect(),
            rules: Arc::clone(rules),
            now: START,
            one_way: Micros::from_millis(round_trip_ms / 2),
            exact: Count::default(),
            exactly: 0,
            random: 88_172_645_463_325_252,
        }
    }

    /// A number below `most`, the same in every run.
    pub fn random(&mut self, most: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % most
    }

    /// Lets a millisecond pass: everything that is due is said and heard.
    pub fn tick(&mut self) {
        self.now = self.now.after(Micros::from_millis(1));
        for n in 0..self.places.len() {
            self.carry(n);
            let place = &mut self.places[n];
            for source in &mut place.sources {
                place.region.serve(source, self.now);
            }
        }
    }

    pub fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.tick();
        }
    }

    fn carry(&mut self, n: usize) {
        let (now, one_way) = (self.now, self.one_way);
        let Place {
            region,
            up,
            down,
            cut,
            ..
        } = &mut self.places[n];
        while let Some(report) = region.ledger.poll_upstream(now, &mut region.log) {
            up.push_back(Carried {
                at: now.after(one_way),
                id: report.message.id,
                body: report.message.body,
            });
        }
        while let Some(message) = up.pop_front_if(|message| message.at <= now) {
            if *cut {
                region.ledger.upstream_unanswered(message.id);
                continue;
            }
            let request = SyncRequest::decode(&*message.body).unwrap();
            let reply = self
                .global
                .ledger
                .sync(request, now, &mut self.global.log)
                .unwrap();
            down.push_back(Carried {
                at: now.after(one_way),
                id: message.id,
                body: reply.encode_to_vec(),
            });
        }
        while let Some(message) = down.pop_front_if(|message| message.at <= now) {
            if *cut {
                region.ledger.upstream_unanswered(message.id);
                continue;
            }
            let heard =
                region
                    .ledger
                    .handle_upstream(message.id, &message.body, now, &mut region.log);
            heard.unwrap();
        }
    }

    /// A request at a source of a region; whether it was admitted.
    pub fn request(&mut self, place: usize, source: usize, key: &str) -> bool {
        let now = self.now;
        let Place {
            region, sources, ..
        } = &mut self.places[place];
        let source = &mut sources[source];
        let query = query(source.rules(), key);
        let mut verdict = source.decide(&query, now);
        if matches!(verdict, Verdict::Hold { .. }) {
            region.serve(source, now);
            verdict = source.decide_held(&query, now, true);
        }
        region.serve(source, now);
        let admitted = !matches!(verdict, Verdict::Deny(_));
        let place = &mut self.places[place];
        place.admitted += u64::from(admitted);
        place.denied += u64::from(!admitted);
        let quota = self.rules.rule(0).unwrap().quota;
        if self.exact.allows(&quota, 1, now) {
            self.exact.add(&quota, 1, now);
            self.exactly += 1;
        }
        admitted
    }

    pub fn admitted(&self) -> u64 {
        self.places.iter().map(|place| place.admitted).sum()
    }

    /// How far all that was admitted is off what one exact limiter would have.
    pub fn error_percent(&self) -> f64 {
        (self.admitted() as f64 / self.exactly as f64 - 1.0) * 100.0
    }

    /// Waits until everything that was counted is in the global books.
    pub fn drain(&mut self) {
        for place in &mut self.places {
            place.cut = false;
            place.sources.iter_mut().for_each(Limiter::flush_now);
        }
        self.run(5_000);
    }
}

impl Place {
    fn new(n: u64, sources: u64) -> Self {
        let none = rules(0, Vec::new());
        let mut region = Region {
            ledger: Ledger::new(SEEDS),
            log: crate::common::Log::default(),
        };
        let name = format!("region-{n}");
        let epoch = START.as_micros();
        let joined = Name {
            name: name.clone(),
            epoch,
        };
        region.ledger.join(joined, START, &mut region.log);
        let number = |s: u64| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n * 1_000 + s + 1);
        Self {
            region,
            sources: (0..sources)
                .map(|s| source(number(s), &none, settings()))
                .collect(),
            name,
            lives: 1,
            up: VecDeque::new(),
            down: VecDeque::new(),
            cut: false,
            admitted: 0,
            denied: 0,
        }
    }

    /// Ends without a word and starts again from its log, or from a snapshot and the
    /// log. What was on its way is lost.
    pub fn restart(&mut self, snapshot: bool, now: Timestamp) {
        let mut ledger = Ledger::new(SEEDS);
        if snapshot {
            for (partition, (contains, chunks)) in self.region.snapshot().into_iter().enumerate() {
                for chunk in chunks {
                    let partition = u32::try_from(partition).unwrap();
                    assert!(partition < PARTITIONS);
                    ledger.restore(partition, contains, &chunk).unwrap();
                }
            }
        }
        for (n, record) in self.region.log.0.iter().enumerate() {
            ledger.replay(n as u64 + 1, record).unwrap();
        }
        self.region.ledger = ledger;
        self.lives += 1;
        let joined = Name {
            name: self.name.clone(),
            epoch: now.as_micros(),
        };
        self.region.ledger.join(joined, now, &mut self.region.log);
        self.up.clear();
        self.down.clear();
    }
}

/// Rates of requests, in each region, for so many seconds: thousandths of a request a
/// millisecond.
pub fn offer(world: &mut World, rates: &[u64], key: &str, seconds: u64) {
    for _ in 0..seconds * 1_000 {
        step(world, rates, key);
    }
}

/// A millisecond of that.
pub fn step(world: &mut World, rates: &[u64], key: &str) {
    for (place, rate) in rates.iter().enumerate() {
        let mut left = *rate;
        while left > 0 {
            let part = left.min(1_000_000);
            left -= part;
            if world.random(1_000_000) < part {
                let sources = world.places[place].sources.len() as u64;
                let source = usize::try_from(world.random(sources)).unwrap();
                world.request(place, source, key);
            }
        }
    }
    world.tick();
}
