//! What a region had to do, in figures: each a second of virtual time, over the time
//! in which requests arrived.

use serde::Serialize;

use crate::{
    cost,
    load::{Held, Load},
};

/// The figures of one region.
///
/// Bytes are those of the encoded messages, without what HTTP and TLS add.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionReport {
    /// Messages it took in.
    pub messages_per_s: f64,
    /// Of those: sent because a source had run out.
    pub asks_per_s: f64,
    /// Counts of one key that were reported.
    pub deltas_per_s: f64,
    /// Bytes of flushes to it.
    pub flush_up_bytes_per_s: f64,
    /// Bytes of answers to them.
    pub flush_down_bytes_per_s: f64,
    /// Bytes of asks to it.
    pub ask_up_bytes_per_s: f64,
    /// Bytes of answers to them.
    pub ask_down_bytes_per_s: f64,
    /// Bytes written to its log.
    pub log_bytes_per_s: f64,
    /// Keys it held when the last request had arrived.
    pub keys: u64,
    /// Memory of its books, loans included, for each of them.
    pub bytes_per_key: f64,
    /// Instructions to take messages in and answer them, without HTTP and TLS, for
    /// each request that a source of the region decided: by the model in
    /// `simulator/src/cost.rs`.
    pub instructions_per_request: f64,
    /// The same in a second.
    pub instructions_per_s: f64,
}

impl RegionReport {
    /// Of what came in so many seconds, in which its sources decided so many requests.
    #[allow(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    pub(crate) fn new(load: &Load, held: Held, seconds: f64, requests: f64) -> Self {
        let a_second = |count: u64| count as f64 / seconds;
        let (flushes, asks) = (&load.flushes, &load.asks);
        let instructions = cost::instructions(load);
        Self {
            messages_per_s: a_second(flushes.messages + asks.messages),
            asks_per_s: a_second(asks.messages),
            deltas_per_s: a_second(load.deltas),
            flush_up_bytes_per_s: a_second(flushes.up_bytes),
            flush_down_bytes_per_s: a_second(flushes.down_bytes),
            ask_up_bytes_per_s: a_second(asks.up_bytes),
            ask_down_bytes_per_s: a_second(asks.down_bytes),
            log_bytes_per_s: a_second(load.log_bytes),
            keys: held.keys,
            bytes_per_key: held.bytes as f64 / (held.keys as f64).max(1.0),
            instructions_per_request: instructions as f64 / requests.max(1.0),
            instructions_per_s: a_second(instructions),
        }
    }
}
