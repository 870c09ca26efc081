//! What a scenario must hold to be run, beyond its form.

use super::{Fault, Scenario, Traffic};

/// No run is longer than this: ten years.
const SECONDS_MAX: f64 = 315_360_000.0;

/// A source each, with all that it holds.
const SOURCES_MAX: usize = 100_000;

/// A query each.
const KEYS_MAX: usize = 10_000_000;

impl Scenario {
    /// Whether it can be run; if not, why.
    pub fn check(&self) -> Result<(), String> {
        let sources = self.pops.saturating_mul(self.workers_per_pop);
        if !(1..=SOURCES_MAX).contains(&sources) {
            return Err(format!(
                "pops × workers_per_pop must be 1 to {SOURCES_MAX}, not {sources}"
            ));
        }
        if !(1..=self.pops).contains(&self.regions) {
            let (regions, pops) = (self.regions, self.pops);
            return Err(format!(
                "regions must be 1 to the number of pops, {pops}, not {regions}"
            ));
        }
        if self.source_keys_max == 0 || self.region_keys_max == Some(0) {
            return Err("source_keys_max and region_keys_max must be more than 0".to_owned());
        }
        span("region_rtt_ms", self.region_rtt_ms)?;
        span("region_rtt_jitter_ms", self.region_rtt_jitter_ms)?;
        if let Some(global) = &self.global {
            span("global.rtt_ms", global.rtt_ms)?;
            span("global.rtt_jitter_ms", global.rtt_jitter_ms)?;
            span("global.timeout_ms", global.timeout_ms)?;
        }
        span("commit_ms", self.commit_ms)?;
        span("timeout_ms", self.timeout_ms)?;
        positive("duration_s", self.duration_s)?;
        self.traffic.check()?;
        self.faults.iter().try_for_each(|fault| fault.check(self))
    }
}

impl Traffic {
    fn check(&self) -> Result<(), String> {
        let keys = match *self {
            Self::Spray { load, keys } => positive("load", load).map(|()| keys)?,
            Self::Moving {
                load,
                keys,
                dwell_s,
            } => {
                positive("dwell_s", dwell_s)?;
                positive("load", load).map(|()| keys)?
            }
            Self::Burst {
                load,
                keys,
                burst_every_s,
                ..
            } => {
                positive("burst_every_s", burst_every_s)?;
                positive("load", load).map(|()| keys)?
            }
            Self::Zipf {
                keys,
                exponent,
                total_rps,
                ..
            } => {
                span("exponent", exponent)?;
                positive("total_rps", total_rps).map(|()| keys)?
            }
        };
        if (1..=KEYS_MAX).contains(&keys) {
            Ok(())
        } else {
            Err(format!("keys must be 1 to {KEYS_MAX}, not {keys}"))
        }
    }
}

impl Fault {
    fn check(&self, scenario: &Scenario) -> Result<(), String> {
        match self {
            Self::RegionRestart {
                region,
                at_s,
                down_s,
            }
            | Self::RegionUnreachable {
                region,
                at_s,
                down_s,
            } => {
                place("region", *region, scenario.regions)?;
                span("at_s", *at_s).and_then(|()| span("down_s", *down_s))
            }
            Self::GlobalRestart { .. } | Self::GlobalUnreachable { .. }
                if scenario.global.is_none() =>
            {
                Err("there is no `global` that could fail".to_owned())
            }
            Self::GlobalRestart { at_s, down_s } => {
                span("at_s", *at_s).and_then(|()| span("down_s", *down_s))
            }
            Self::GlobalUnreachable {
                region,
                at_s,
                down_s,
            } => {
                place("region", *region, scenario.regions)?;
                span("at_s", *at_s).and_then(|()| span("down_s", *down_s))
            }
            Self::PopPartition { pop, at_s, down_s } => {
                place("pop", *pop, scenario.pops)?;
                span("at_s", *at_s).and_then(|()| span("down_s", *down_s))
            }
            Self::Loss {
                request_rate,
                reply_rate,
                duplicate_rate,
                reorder_rate,
            } => [request_rate, reply_rate, duplicate_rate, reorder_rate]
                .into_iter()
                .try_for_each(|rate| share(*rate)),
            Self::ClockSkew { pop_offsets_ms } => match pop_offsets_ms.len().checked_sub(1) {
                Some(last) => place("pop_offsets_ms", last, scenario.pops),
                None => Ok(()),
            },
        }
    }
}

fn span(name: &str, value: f64) -> Result<(), String> {
    if (0.0..=SECONDS_MAX).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} must be 0 to {SECONDS_MAX}, not {value}"))
    }
}

fn positive(name: &str, value: f64) -> Result<(), String> {
    if value > 0.0 {
        span(name, value)
    } else {
        Err(format!("{name} must be more than 0, not {value}"))
    }
}

fn share(value: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(format!("a rate of messages must be 0 to 1, not {value}"))
    }
}

fn place(name: &str, place: usize, length: usize) -> Result<(), String> {
    if place < length {
        Ok(())
    } else {
        Err(format!(
            "{name} names place {place}, and there are {length}"
        ))
    }
}
