//! What reaches a region and leaves it, and what that takes: messages, bytes,
//! memory, instructions.
//!
//! Bytes are those of the encoded messages. What HTTP and TLS add is not in them.

use limiter::{time::Timestamp, wire::SyncRequest};

/// Sums over the time in which requests arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Messages that count something, or keep in touch.
    pub(crate) flushes: Traffic,
    /// Messages that only claim: sent at once, because a source had run out.
    pub(crate) asks: Traffic,
    /// Batches in them.
    pub(crate) batches: u64,
    /// Counts of one key in those.
    pub(crate) deltas: u64,
    /// What is written to the log.
    pub(crate) log_bytes: u64,
    /// When requests arrive no longer.
    end: Timestamp,
}

/// Messages of one kind, and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) messages: u64,
    /// To the region.
    pub(crate) up_bytes: u64,
    /// From the region.
    pub(crate) down_bytes: u64,
    /// Keys claimed.
    pub(crate) claims: u64,
}

/// What a region holds when the last request has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Keys counted.
    pub(crate) keys: u64,
    /// All of its books and loans.
    pub(crate) bytes: u64,
}

impl Load {
    /// Nothing so far; what comes after `end` is not counted.
    pub(crate) fn until(end: Timestamp) -> Self {
        Self {
            end,
            ..Self::default()
        }
    }

    /// A message of so many bytes is taken in.
    pub(crate) fn received(&mut self, request: &SyncRequest, bytes: usize, now: Timestamp) {
        if now >= self.end {
            return;
        }
        let groups = || request.batches.iter().flat_map(|batch| &batch.groups);
        self.batches += request.batches.len() as u64;
        self.deltas += groups().map(|group| keys(&group.keys)).sum::<u64>();
        let claims = request.claims.iter().map(|group| keys(&group.keys));
        let traffic = self.kind(is_ask(request));
        traffic.claims += claims.sum::<u64>();
        traffic.messages += 1;
        traffic.up_bytes += bytes as u64;
    }

    /// It is answered with so many bytes.
    pub(crate) fn answered(&mut self, ask: bool, bytes: usize, now: Timestamp) {
        if now < self.end {
            self.kind(ask).down_bytes += bytes as u64;
        }
    }

    /// So much was written for it.
    pub(crate) fn logged(&mut self, bytes: u64, now: Timestamp) {
        if now < self.end {
            self.log_bytes += bytes;
        }
    }

    const fn kind(&mut self, ask: bool) -> &mut Traffic {
        if ask {
            &mut self.asks
        } else {
            &mut self.flushes
        }
    }
}

/// Whether a message only claims.
pub(crate) const fn is_ask(request: &SyncRequest) -> bool {
    request.batches.is_empty() && !request.claims.is_empty()
}

/// Keys in a column of sixteen bytes each.
const fn keys(column: &[u8]) -> u64 {
    column.len() as u64 / 16
}
