//! What counters put on record: not the change, but what it came to. So a record
//! that is read twice says the same as one that is read once.
//!
//! A snapshot is records, too, one for each counter and each idempotency key.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use prost::Message;

use super::entry::{Slot, Told};
use crate::{
    counter::CounterId,
    time::{Micros, Timestamp},
};

/// How one counter is now, and what somebody was told of it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Record {
    /// The region's clock as it was made; 0 in a snapshot.
    #[prost(uint64, tag = "1")]
    pub(super) at_us: u64,
    /// The counter.
    #[prost(string, tag = "2")]
    pub(super) id: String,
    /// What it holds now.
    #[prost(message, optional, tag = "3")]
    pub(super) state: Option<State>,
    /// Whether it is gone.
    #[prost(bool, tag = "4")]
    pub(super) deleted: bool,
    /// What the caller of an add was told.
    #[prost(message, optional, tag = "5")]
    pub(super) told: Option<Answer>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct State {
    #[prost(sint64, tag = "1")]
    pub(super) value: i64,
    /// 0: never.
    #[prost(uint64, tag = "2")]
    pub(super) expires_us: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Answer {
    /// Counter and key, as they are filed.
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(fixed64, tag = "2")]
    pub(super) fingerprint: u64,
    #[prost(sint64, tag = "3")]
    pub(super) value: i64,
    #[prost(bool, tag = "4")]
    pub(super) applied: bool,
    #[prost(uint64, tag = "5")]
    pub(super) until_us: u64,
}

impl Record {
    /// One that says nothing yet.
    pub(super) fn of(id: &CounterId, now: Timestamp) -> Self {
        Self {
            at_us: now.as_micros(),
            id: id.as_text().into(),
            ..Self::default()
        }
    }

    /// Becomes the counter as it is, for a snapshot.
    pub(super) fn be_slot(&mut self, slot: &Slot) {
        slot.id.as_text().clone_into(&mut self.id);
        self.state = Some(State::new(slot.value, slot.expires));
    }

    /// Becomes what somebody was told, for a snapshot.
    pub(super) fn be_told(&mut self, told: &Told) {
        let answer = self.told.get_or_insert_default();
        (*told.name).clone_into(&mut answer.name);
        answer.fingerprint = told.fingerprint;
        answer.value = told.value;
        answer.applied = told.applied;
        answer.until_us = told.until.as_micros();
    }

    /// Reads as many as there are, each with its length before it.
    pub(super) fn read_all(mut bytes: &[u8]) -> Result<Vec<Self>, prost::DecodeError> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            records.push(Self::decode_length_delimited(&mut bytes)?);
        }
        Ok(records)
    }
}

impl State {
    pub(super) fn new(value: i64, expires: Option<Timestamp>) -> Self {
        let expires_us = expires.map_or(0, Timestamp::as_micros);
        Self { value, expires_us }
    }

    pub(super) fn expires(self) -> Option<Timestamp> {
        let expires = Timestamp::from_micros(self.expires_us);
        (expires.since(Timestamp::default()) > Micros::ZERO).then_some(expires)
    }
}
