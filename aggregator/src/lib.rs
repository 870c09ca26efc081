//! The regional aggregator: durable counters, leases and rules behind HTTP.

pub mod auth;
mod chain;
pub mod cli;
pub mod client;
pub mod config;
pub mod rules;
pub mod serve;
pub mod shared;
pub mod store;
