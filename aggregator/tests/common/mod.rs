//! What the tests of the running service share: a client, messages, rules.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod client;
pub mod cluster;
pub mod killed;
pub mod messages;
pub mod random;
pub mod source;
pub mod valkey;
