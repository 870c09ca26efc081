//! The regional aggregator: durable counters, leases and rules behind HTTP.

mod chain;
pub mod cli;
pub mod config;
pub mod rules;
pub mod serve;
pub mod store;
