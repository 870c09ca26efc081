//! A run made ready: every number in its unit, every default filled in.

use limiter::{
    bound::Fleet,
    edge::Settings,
    rule::Rule,
    time::{Micros, Timestamp},
};

use crate::{
    network::{Faults, Path},
    response::Manner,
    scenario::{Fault, GlobalSpec, ResponsesSpec, Scenario, Traffic},
};

/// When every run begins: an instant that no window is aligned to.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_123);

/// All that a run depends on.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) start: Timestamp,
    pub(crate) duration: Micros,
    pub(crate) seed: u64,
    pub(crate) rules: Vec<Rule>,
    pub(crate) traffic: Traffic,
    /// Keys of the traffic: at least one.
    pub(crate) keys: usize,
    pub(crate) regions: usize,
    pub(crate) pops: usize,
    pub(crate) workers_per_pop: usize,
    /// How far ahead the clocks of each place are, in microseconds.
    pub(crate) skews: Vec<i64>,
    pub(crate) path: Path,
    pub(crate) faults: Faults,
    /// The way from regions to the aggregator above them; none: there is none.
    pub(crate) global: Option<Path>,
    /// What is wrong with it; places are regions.
    pub(crate) global_faults: Faults,
    /// Crashes of regions.
    pub(crate) restarts: Vec<Restart>,
    /// From a record being written to its being durable.
    pub(crate) commit: Micros,
    /// From one snapshot of the region to the next; none: it only keeps a log.
    pub(crate) snapshots: Option<Micros>,
    /// Keys that a source has room for.
    pub(crate) keys_max: usize,
    /// Keys that a region has room for; none: any number.
    pub(crate) region_keys_max: Option<u64>,
    pub(crate) flush_interval: Micros,
    /// Rules that come into force later.
    pub(crate) changes: Vec<(Timestamp, Vec<Rule>)>,
    /// Sources that die and are born again.
    pub(crate) rebirths: Vec<(Timestamp, usize)>,
    /// How services answer; none: no rule cares.
    pub(crate) responses: Option<Manner>,
}

/// A region dies, and comes back; or the aggregator above, which is the place after
/// the last region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    pub(crate) region: usize,
    pub(crate) at: Timestamp,
    /// How long it is gone.
    pub(crate) down: Micros,
}

impl Setup {
    /// What a scenario asks for, with another seed if one is given.
    pub(crate) fn of(scenario: &Scenario, seed: Option<u64>) -> Self {
        let mut setup = Self {
            start: START,
            duration: seconds(scenario.duration_s),
            seed: seed.unwrap_or(scenario.seed),
            rules: scenario.rule.to_rule("simulated").into_iter().collect(),
            traffic: scenario.traffic.clone(),
            keys: scenario.traffic.keys(),
            regions: scenario.regions,
            pops: scenario.pops,
            workers_per_pop: scenario.workers_per_pop,
            skews: vec![0; scenario.pops],
            path: Path {
                round_trip: millis(scenario.region_rtt_ms),
                jitter: millis(scenario.region_rtt_jitter_ms),
                timeout: millis(scenario.timeout_ms),
            },
            faults: Faults::default(),
            global: scenario.global.as_ref().map(GlobalSpec::path),
            global_faults: Faults::default(),
            restarts: Vec::new(),
            commit: millis(scenario.commit_ms),
            snapshots: None,
            keys_max: scenario.source_keys_max,
            region_keys_max: scenario.region_keys_max,
            flush_interval: Micros::from_secs(1),
            changes: Vec::new(),
            rebirths: Vec::new(),
            responses: scenario.responses.as_ref().map(ResponsesSpec::manner),
        };
        if let Some(manner) = setup.responses {
            setup.rules.iter_mut().for_each(|rule| manner.heed(rule));
        }
        for fault in &scenario.faults {
            setup.fault(fault);
        }
        setup
    }

    /// Adds one thing that goes wrong.
    pub(crate) fn fault(&mut self, fault: &Fault) {
        let from = |at_s: f64| self.start.after(seconds(at_s));
        match fault {
            Fault::RegionRestart {
                region,
                at_s,
                down_s,
            } => self.restarts.push(Restart {
                region: *region,
                at: from(*at_s),
                down: seconds(*down_s),
            }),
            Fault::RegionUnreachable {
                region,
                at_s,
                down_s,
            } => {
                let start = from(*at_s);
                let pops = (0..self.pops).filter(|pop| self.region_of(*pop) == *region);
                let pops = pops.collect();
                self.faults.cut(pops, start, start.after(seconds(*down_s)));
            }
            Fault::GlobalRestart { at_s, down_s } => self.restarts.push(Restart {
                region: self.regions,
                at: from(*at_s),
                down: seconds(*down_s),
            }),
            Fault::GlobalUnreachable {
                region,
                at_s,
                down_s,
            } => {
                let start = from(*at_s);
                let end = start.after(seconds(*down_s));
                self.global_faults.cut(vec![*region], start, end);
            }
            Fault::PopPartition { pop, at_s, down_s } => {
                let start = from(*at_s);
                let end = start.after(seconds(*down_s));
                self.faults.cut(vec![*pop], start, end);
            }
            Fault::Loss {
                request_rate,
                reply_rate,
                duplicate_rate,
                reorder_rate,
            } => {
                for faults in [&mut self.faults, &mut self.global_faults] {
                    faults.request_rate = *request_rate;
                    faults.reply_rate = *reply_rate;
                    faults.duplicate_rate = *duplicate_rate;
                    faults.reorder_rate = *reorder_rate;
                }
            }
            Fault::ClockSkew { pop_offsets_ms } => {
                for (skew, offset) in self.skews.iter_mut().zip(pop_offsets_ms) {
                    *skew = offset.saturating_mul(1_000);
                }
            }
        }
    }

    /// Sources in all.
    pub(crate) const fn sources(&self) -> usize {
        self.pops * self.workers_per_pop
    }

    /// Regions, and the aggregator above them if there is one.
    pub(crate) fn ledgers(&self) -> usize {
        self.regions + usize::from(self.global.is_some())
    }

    /// The region that a place belongs to.
    pub(crate) const fn region_of(&self, pop: usize) -> usize {
        pop % self.regions
    }

    /// The sources of one region, the largest, and how far they are from it.
    pub(crate) fn fleet(&self) -> Fleet {
        let sources = self.pops.div_ceil(self.regions) * self.workers_per_pop;
        Fleet {
            sources: u32::try_from(sources).unwrap_or(u32::MAX),
            round_trip: self.path.round_trip,
            regions: self
                .global
                .map_or(1, |_| u32::try_from(self.regions).unwrap_or(1)),
            above: self
                .global
                .map_or(Micros::ZERO, |path| path.round_trip.plus(path.jitter)),
        }
    }

    /// Whether nothing goes wrong in it, and every source flushes as often as the
    /// region counts on.
    pub(crate) fn is_healthy(&self) -> bool {
        let events = self.restarts.len() + self.changes.len() + self.rebirths.len();
        let clocks = self.skews.iter().all(|skew| *skew == 0);
        let flushes = self.flush_interval <= Micros::from_secs(1);
        let well = self.faults.is_none() && self.global_faults.is_none();
        events == 0 && clocks && flushes && well
    }

    /// When the last request has arrived.
    pub(crate) const fn end(&self) -> Timestamp {
        self.start.after(self.duration)
    }

    /// What bounds each source, with these hash seeds.
    pub(crate) const fn settings(&self, hash_seeds: [u64; 4]) -> Settings {
        Settings {
            keys_max: self.keys_max,
            flush_interval: self.flush_interval,
            hash_seeds,
        }
    }
}

impl GlobalSpec {
    fn path(&self) -> Path {
        Path {
            round_trip: millis(self.rtt_ms),
            jitter: millis(self.rtt_jitter_ms),
            timeout: millis(self.timeout_ms),
        }
    }
}

#[cfg(test)]
impl Setup {
    /// A run of one source and a second.
    pub(crate) fn sample() -> Self {
        let text = r#"{"name": "sample", "rule": {"limit": 10, "window_ms": 1000},
            "pops": 1, "workers_per_pop": 1, "region_rtt_ms": 2, "duration_s": 1,
            "traffic": {"kind": "spray", "load": 1}}"#;
        let scenario = serde_json::from_str(text);
        #[allow(clippy::unwrap_used, reason = "the text stands above")]
        Self::of(&scenario.unwrap(), None)
    }
}

/// Seconds as a span, to the microsecond.
pub(crate) fn seconds(seconds: f64) -> Micros {
    millis(seconds * 1_000.0)
}

/// Milliseconds as a span, to the microsecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from a float saturates, and spans are not negative"
)]
pub(crate) fn millis(millis: f64) -> Micros {
    Micros::new(libm::round(millis * 1_000.0) as u64)
}
