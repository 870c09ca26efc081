//! What the log promises, one test each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that fails may panic"
)]

mod backups;
mod commits;
mod crash;
mod directories;
mod flips;
mod model;
mod real;
mod recovery;
mod snapshots;
