//! The component in the hosts that load it: wasmtime, and node.
//!
//! One binary, since a host compiles the component first, and that takes longer than
//! all the tests.

#![expect(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod artifact;
mod fleet;
mod garbage;
mod middleware;
mod node;
mod readme;
mod site;
mod source;
