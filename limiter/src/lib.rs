//! The core of Weir. The *Limiter* decides at the edge; the *Ledger* counts in
//! the region; everything else carries bytes between them.
//!
//! Nothing here reads a clock, touches a network or waits: time and randomness
//! are arguments, so that the same code runs in Envoy, in a Worker, in the
//! aggregator and in a simulator, and gives the same answer in all of them.
#![no_std]

extern crate alloc;

pub mod address;
pub mod answer;
mod borrow;
pub mod bound;
mod cold;
pub mod count;
pub mod counter;
pub mod cut;
pub mod decision;
pub mod edge;
pub mod journal;
pub mod key;
pub mod ledger;
pub mod list;
pub mod quota;
pub mod request;
pub mod rule;
pub mod ruleset;
pub mod time;
pub mod window;
pub mod wire;
