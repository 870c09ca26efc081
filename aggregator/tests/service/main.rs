//! The service as its clients see it, over HTTP on this machine.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking, and shares its helpers"
)]

#[path = "../common/mod.rs"]
mod common;

mod backup;
mod bounded;
mod check;
mod check_fast;
mod client;
mod clock;
mod command;
mod connections;
mod counter_command;
mod counters;
mod counters_disk;
mod disk;
mod drain;
mod durability;
mod examples;
mod http;
mod lists;
mod load;
mod logs;
mod openapi;
mod overload;
mod restart;
mod rules;
mod rules_api;
mod rules_client;
mod rules_command;
mod rules_history;
mod server;
mod stub;
mod sync;
mod tiers;
mod tls;
mod tokens;
mod upstream;
mod watch;
