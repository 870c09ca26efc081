//! What messages cost a region, in instructions: a model, so that a run of millions
//! of requests need not be traced instruction by instruction.
//!
//! The figures are what callgrind counts for [`Region::sync`](crate::region::Region)
//! of a release build on x86-64: reading a message, counting it, lending on it,
//! writing the answer. `make instructions` counts again, and prints what the model
//! says beside it.

use crate::load::Load;

/// To read a message: for each byte of it.
const BYTE_READ: u64 = 27;

/// To take in a flush and write the answer.
const FLUSH: u64 = 20_100;

/// For each count of one key in it, and the loan on it.
const DELTA: u64 = 11_600;

/// To answer an ask.
const ASK: u64 = 14_200;

/// Instructions that all of this takes.
pub(crate) const fn instructions(load: &Load) -> u64 {
    let bytes = load.flushes.up_bytes + load.asks.up_bytes;
    bytes * BYTE_READ
        + load.flushes.messages * FLUSH
        + load.deltas * DELTA
        + load.asks.messages * ASK
}
