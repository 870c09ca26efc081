//! What a scenario file says: a fleet, a rule, its traffic, what goes wrong,
//! and what must come of it.
//!
//! A field that is not known here is an error, with its line: a bound that is
//! misspelt must not pass.

use std::num::NonZeroU64;

use serde::Deserialize;

mod check;

/// One scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What to call it.
    pub name: String,
    /// The rule in force.
    pub rule: RuleSpec,
    /// Regions; the places are spread over them evenly.
    #[serde(default = "one")]
    pub regions: usize,
    /// Places.
    pub pops: usize,
    /// Sources in each place.
    pub workers_per_pop: usize,
    /// Round trip from a source to the region.
    pub region_rtt_ms: f64,
    /// How much longer or shorter a round trip may take.
    #[serde(default)]
    pub region_rtt_jitter_ms: f64,
    /// The aggregator above the regions, if there is one. Without one a region keeps
    /// global rules by itself.
    #[serde(default)]
    pub global: Option<GlobalSpec>,
    /// How long requests arrive.
    pub duration_s: f64,
    /// What chance starts from.
    #[serde(default)]
    pub seed: u64,
    /// The requests.
    pub traffic: Traffic,
    /// What services answer, if the rule cares.
    #[serde(default)]
    pub responses: Option<ResponsesSpec>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// What must come of it.
    #[serde(default)]
    pub bounds: Bounds,
    /// Time from a record being written to its being durable.
    #[serde(default)]
    pub commit_ms: f64,
    /// How long a transport waits for an answer.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: f64,
    /// Keys that a source has room for.
    #[serde(default = "keys_max")]
    pub source_keys_max: usize,
    /// Keys that a region has room for; none: any number.
    #[serde(default)]
    pub region_keys_max: Option<u64>,
}

/// The aggregator above all regions.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlobalSpec {
    /// Round trip from a region to it.
    pub rtt_ms: f64,
    /// How much longer or shorter a round trip may take.
    #[serde(default)]
    pub rtt_jitter_ms: f64,
    /// How long a region's transport waits for an answer.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: f64,
}

/// A rule, where it is not as by default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// How it counts.
    #[serde(default)]
    pub algorithm: AlgorithmSpec,
    /// Hits per window.
    pub limit: NonZeroU64,
    /// The window.
    pub window_ms: NonZeroU64,
    /// What a token bucket holds, if not the limit.
    #[serde(default)]
    pub burst: Option<NonZeroU64>,
    /// The most that a source admits per window when it cannot ask.
    #[serde(default)]
    pub local_cap: Option<u64>,
    /// How far over the limit credit may lead, in millionths.
    #[serde(default)]
    pub tolerance_ppm: Option<u32>,
    /// How long a request may wait.
    #[serde(default)]
    pub hold_ms: Option<u64>,
    /// Who shares the limit.
    #[serde(default)]
    pub scope: ScopeSpec,
}

/// Who shares a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeSpec {
    /// All sources of a region: each region has the limit by itself.
    #[default]
    Region,
    /// All regions.
    Global,
}

/// What services answer. Requests that fail are given back; what others cost in all
/// is drawn evenly from nothing to the most.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponsesSpec {
    /// The longest that an answer takes.
    pub within_ms: f64,
    /// Share of requests that fail.
    #[serde(default)]
    pub failing: f64,
    /// The most that a request costs; 0: what it has spent as it came.
    #[serde(default)]
    pub cost_max: u64,
}

/// How a rule counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlgorithmSpec {
    /// By fixed windows.
    FixedWindow,
    /// By windows that slide.
    #[default]
    SlidingWindow,
    /// By tokens.
    TokenBucket,
}

/// Which requests arrive. `load` is the rate of all of them together in limits
/// per window; each is for one of `keys` keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic {
    /// Each at a random source.
    Spray {
        /// The rate.
        load: f64,
        /// The keys.
        #[serde(default = "one")]
        keys: usize,
    },
    /// All at one source, then all at another.
    Moving {
        /// The rate.
        load: f64,
        /// The keys.
        #[serde(default = "one")]
        keys: usize,
        /// How long they stay at one.
        dwell_s: f64,
    },
    /// A spray, and now and then many at one source within a second.
    Burst {
        /// The rate of the spray.
        load: f64,
        /// The keys.
        #[serde(default = "one")]
        keys: usize,
        /// From one burst to the next.
        burst_every_s: f64,
        /// Requests in one.
        burst_size: u64,
    },
    /// Keys of very different popularity, each request at a random source.
    Zipf {
        /// Not used: the rate is `total_rps`.
        #[serde(default)]
        load: f64,
        /// The keys.
        keys: usize,
        /// How different: the n-th key is n^exponent rarer than the first.
        exponent: f64,
        /// The rate over all keys, in requests a second.
        total_rps: f64,
    },
}

/// What goes wrong.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// A region crashes, and comes back from what was durable.
    RegionRestart {
        /// Which region, from 0.
        #[serde(default)]
        region: usize,
        /// When.
        at_s: f64,
        /// For how long it refuses connections.
        down_s: f64,
    },
    /// A region lives, and no message to or from it arrives.
    RegionUnreachable {
        /// Which region, from 0.
        #[serde(default)]
        region: usize,
        /// When.
        at_s: f64,
        /// For how long.
        down_s: f64,
    },
    /// The same for the sources of one place.
    PopPartition {
        /// Which place, from 0.
        pop: usize,
        /// When.
        at_s: f64,
        /// For how long.
        down_s: f64,
    },
    /// The aggregator above the regions crashes, and comes back from what was durable.
    GlobalRestart {
        /// When.
        at_s: f64,
        /// For how long it refuses connections.
        down_s: f64,
    },
    /// A region and the aggregator above it live, and no message between them arrives.
    GlobalUnreachable {
        /// Which region, from 0.
        region: usize,
        /// When.
        at_s: f64,
        /// For how long.
        down_s: f64,
    },
    /// Messages are lost, doubled and late, all the time.
    Loss {
        /// Share of requests that are lost.
        #[serde(default)]
        request_rate: f64,
        /// Share of replies that are lost.
        #[serde(default)]
        reply_rate: f64,
        /// Share of requests that arrive twice.
        #[serde(default)]
        duplicate_rate: f64,
        /// Share of messages that others overtake.
        #[serde(default)]
        reorder_rate: f64,
    },
    /// Clocks are wrong.
    ClockSkew {
        /// How far ahead the clocks of each place are; none for the rest.
        pop_offsets_ms: Vec<i64>,
    },
}

/// What must come of it. What is not given is not bounded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The most that `error` may be.
    pub error_max: Option<f64>,
    /// The most that `contested_error` may be.
    pub contested_error_max: Option<f64>,
    /// The least that `contested_error` may be.
    pub contested_error_min: Option<f64>,
    /// The least that `error` may be.
    pub error_min: Option<f64>,
    /// The most that `over` may be.
    pub over_max: Option<f64>,
    /// The most that `held` may be.
    pub held_max: Option<f64>,
    /// The most that `asks_per_request` may be.
    pub asks_per_request_max: Option<f64>,
    /// The most that `lost_hits` may be.
    pub lost_hits: Option<u64>,
    /// The most that `double_hits` may be.
    pub double_hits: Option<u64>,
    /// Whether `leak_metric` must say what `leaked` does.
    pub leak_reported: Option<bool>,
}

const fn timeout_ms() -> f64 {
    1_000.0
}

const fn keys_max() -> usize {
    1_000_000
}

const fn one() -> usize {
    1
}
