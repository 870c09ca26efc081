//! What a source wants of its host.

use crate::refusal::Refusal;

/// What becomes of a request that has just arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on.
    Pass,
    /// It is answered with this.
    Refuse(Refusal),
    /// It waits for an [`Effect`] that names it.
    Hold,
}

/// What a host is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send this to the region; then [`handle_sent`](super::Source::handle_sent).
    Send {
        /// The message's number.
        id: u64,
        /// The body of a `POST /v1/sync`.
        body: Vec<u8>,
    },
    /// Let a request go on that was held.
    Resume {
        /// The request.
        request: u32,
    },
    /// Answer a request that was held.
    Refuse {
        /// The request.
        request: u32,
        /// The answer.
        refusal: Refusal,
    },
    /// Let the access log say why a request was decided as it was.
    Explain {
        /// The request.
        request: u32,
        /// Why.
        line: String,
    },
    /// Tell the operator.
    Warn(String),
    /// Tell the operator that all is well again.
    Inform(String),
}
