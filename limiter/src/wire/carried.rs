//! Messages as they are carried, and what may be wrong with an answer.

use alloc::{string::String, vec::Vec};

/// Bytes to be carried to the region: the body of one `POST /v1/sync`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// To name it by when its answer comes or does not.
    pub id: u64,
    /// A `SyncRequest`.
    pub body: Vec<u8>,
}

/// Why a reply was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// It is not a `SyncReply`, or not to that message.
    #[error("the reply is not a sync reply to this message")]
    Malformed,
    /// The rules in it are refused; those in force stay.
    #[error("the rules in the reply are refused: {0}")]
    Rules(String),
}
