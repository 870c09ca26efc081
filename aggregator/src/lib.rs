//! The regional aggregator: durable counters, leases and rules behind HTTP.

pub mod rules;
pub mod store;
