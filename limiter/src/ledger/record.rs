//! What a ledger puts on record: each change, as it was made.
//!
//! A record is protobuf, so that a later release can add to it. It holds the
//! change itself and not its effect: the same code counts it now and on replay.

use alloc::vec::Vec;

use prost::{Enumeration, Message};

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
    /// What becomes of hits in `batch` that are under global rules: a [`Forwarding`].
    #[prost(enumeration = "Forwarding", tag = "5")]
    pub(super) forwarding: i32,
    /// What has become of hits on their way to the aggregator above.
    #[prost(message, optional, tag = "6")]
    pub(super) step: Option<Step>,
}

/// What becomes of hits under global rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub(super) enum Forwarding {
    /// There is no aggregator above this one.
    Kept = 0,
    /// They go there.
    Forwarded = 1,
    /// They go there, and were admitted while it could not be asked.
    Alone = 2,
}

/// A step of the hits of one partition on their way.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Step {
    #[prost(uint32, tag = "1")]
    pub(super) partition: u32,
    #[prost(enumeration = "StepKind", tag = "2")]
    pub(super) kind: i32,
    /// Of [`StepKind::Life`] and [`StepKind::Anew`].
    #[prost(fixed64, tag = "3")]
    pub(super) epoch: u64,
}

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub(super) enum StepKind {
    /// None that is known here.
    Unknown = 0,
    /// The next batch begins another life.
    Life = 1,
    /// What is pending has become a batch.
    Cut = 2,
    /// The batch under way is in the books above.
    Acknowledged = 3,
    /// The batch under way begins another life.
    Anew = 4,
}

impl Record {
    /// Hits that `source` counted.
    pub(super) fn counted(
        source: u64,
        batch: Batch,
        forwarding: Forwarding,
        now: Timestamp,
    ) -> Self {
        Self {
            at_us: now.as_micros(),
            source,
            batch: Some(batch),
            forwarding: forwarding.into(),
            ..Self::default()
        }
    }

    /// A step on the way up.
    pub(super) fn stepped(step: Step, now: Timestamp) -> Self {
        Self {
            at_us: now.as_micros(),
            step: Some(step),
            ..Self::default()
        }
    }

    /// Rules that were put in force.
    pub(super) fn ruled(rules: RuleSet, now: Timestamp) -> Self {
        Self {
            at_us: now.as_micros(),
            rules: Some(rules),
            ..Self::default()
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
