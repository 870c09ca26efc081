//! The regional aggregator: durable counters, leases and rules behind HTTP.

pub mod config;
pub mod rules;
pub mod store;
