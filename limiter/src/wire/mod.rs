//! The messages that edge and region exchange, as `proto/sync.proto` has them.

#[allow(
    missing_docs,
    clippy::all,
    reason = "made from proto/sync.proto, where the words are"
)]
// Its lines are as long as they are made.
#[rustfmt::skip]
mod generated;
mod carried;
mod rules;

pub use carried::{Outgoing, ReplyError};
pub use generated::*;
pub use rules::{FieldError, RulesError};
