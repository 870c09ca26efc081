//! The messages that edge and region exchange, as `proto/sync.proto` has them.

#[allow(
    missing_docs,
    clippy::all,
    reason = "made from proto/sync.proto, where the words are"
)]
mod generated;

pub use generated::*;
