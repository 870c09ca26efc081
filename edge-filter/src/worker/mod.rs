//! The adapter for Cloudflare's Workers: carries bytes between JavaScript and the
//! shared logic. The other half is `edge-filter/worker/`.
//!
//! - `abi`: what passes between the two, as safe Rust functions.
//! - `exports`: what JavaScript calls, and nothing more.
//! - `isolate`: one isolate's source.
//! - `object`: the books of one Durable Object.
//! - `above`: that object as a region of an aggregator above it.
//!
//! An instance of the module is one or the other: an isolate, or an object.

mod abi;
mod above;
mod exports;
mod isolate;
mod object;
