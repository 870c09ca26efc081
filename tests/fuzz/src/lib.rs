//! Everything that reads what strangers write, each as a function of bytes that may
//! only return: a panic is a finding.
//!
//! `make fuzz` runs one under libFuzzer; `tests/short.rs` runs each for a while on
//! mutations of its corpus, with any compiler. What once failed stays in the corpus.

#![allow(clippy::panic, reason = "a finding is a panic")]

pub mod address;
pub mod import;
pub mod mutate;
pub mod path;
pub mod rules;
pub mod settings;
mod split;
pub mod wire;

/// A target, by the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 6] = [
    ("address", address::run),
    ("import", import::run),
    ("path", path::run),
    ("rules", rules::run),
    ("settings", settings::run),
    ("wire", wire::run),
];
