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
mod check;
mod client;
mod command;
mod connections;
mod counters;
mod disk;
mod durability;
mod http;
mod logs;
mod overload;
mod restart;
mod rules;
mod server;
mod stub;
mod sync;
mod tls;
mod tokens;
mod watch;
