//! What a ledger puts on record: each change, as it was made.
//!
//! A record is protobuf, so that a later release can add to it. It holds the
//! change itself and not its effect: the same code counts it now and on replay.

use alloc::vec::Vec;

use prost::Message;

use crate::{
    time::Timestamp,
    wire::{Batch, RuleSet},
};

/// One change to the books.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Record {
    /// The region's clock as it was made.
    #[prost(uint64, tag = "1")]
    at_us: u64,
    /// Who counted `batch`; 0: the region itself, which needs no sequence.
    #[prost(fixed64, tag = "2")]
    pub(super) source: u64,
    /// Hits that were counted.
    #[prost(message, optional, tag = "3")]
    pub(super) batch: Option<Batch>,
    /// Rules that were put in force.
    #[prost(message, optional, tag = "4")]
    pub(super) rules: Option<RuleSet>,
}

impl Record {
    /// Hits that `source` counted.
    pub(super) const fn counted(source: u64, batch: Batch, now: Timestamp) -> Self {
        Self {
            at_us: now.as_micros(),
            source,
            batch: Some(batch),
            rules: None,
        }
    }

    /// Rules that were put in force.
    pub(super) const fn ruled(rules: RuleSet, now: Timestamp) -> Self {
        Self {
            at_us: now.as_micros(),
            source: 0,
            batch: None,
            rules: Some(rules),
        }
    }

    /// When it was made.
    pub(super) const fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.at_us)
    }

    /// Its bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}
