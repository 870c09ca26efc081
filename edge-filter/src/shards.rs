//! A region that is several objects: which of them is told what, and what of
//! their answers a source may believe.
//!
//! A partition of the books is one object's, so that a key is, and each object
//! lends its own keys. A source speaks to all of them as to one region: its
//! message is cut into one for each object that it concerns, under the same
//! number, and each answer counts by itself.

use limiter::cut;
use limiter::key::PARTITIONS;
use limiter::wire::{SyncReply, SyncRequest};
use prost::Message;

/// The objects of one region, as one source knows them.
#[derive(Debug)]
pub struct Shards {
    shards: Vec<Shard>,
    /// Who hears of a message that says nothing: the sources spread over all.
    idle: usize,
    /// Whether their rules are those of an aggregator above.
    above: bool,
    /// The revision that the source has from them; 0: none yet.
    revision: u64,
}

#[derive(Debug, Clone, Default)]
struct Shard {
    /// Its clock in the latest answer: each has its own.
    heard_us: u64,
    /// The rules that it ran then.
    revision: u64,
}

/// A message to one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The object, from 0.
    pub shard: u32,
    /// The body of a `POST /v1/sync`.
    pub body: Vec<u8>,
}

/// An answer, as far as it may be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// To be taken in.
    Reply(Vec<u8>),
    /// The object runs older rules than the source. It has to be told the new
    /// ones, and asked again.
    Outdated,
}

impl Shards {
    /// `count` objects, 1 to [`PARTITIONS`], spoken to by this source.
    #[must_use]
    pub fn new(count: u32, source: u64) -> Self {
        let count = count.clamp(1, PARTITIONS);
        let idle = source % u64::from(count);
        Self {
            shards: vec![Shard::default(); count as usize],
            idle: usize::try_from(idle).unwrap_or(0),
            above: false,
            revision: 0,
        }
    }

    /// Their rules are those of an aggregator above them.
    #[must_use]
    pub fn below_an_aggregator(mut self) -> Self {
        self.above = true;
        self
    }

    /// Cuts a message into one for each object that it concerns.
    ///
    /// What is no message goes to the first as it is, to be refused there.
    #[must_use]
    pub fn cut(&self, body: Vec<u8>) -> Vec<Part> {
        if self.shards.len() == 1 {
            return vec![Part { shard: 0, body }];
        }
        let Ok(request) = SyncRequest::decode(body.as_slice()) else {
            return vec![Part { shard: 0, body }];
        };
        let heads = self.shards.iter().map(|shard| head(&request, shard));
        let mut parts: Vec<SyncRequest> = heads.collect();
        cut::deal(request, |partition| self.of(partition), &mut parts);
        let speaks = |part: &SyncRequest| !part.batches.is_empty() || !part.claims.is_empty();
        let silent = !parts.iter().any(speaks);
        let parts = parts.iter().zip(0_u32..);
        parts
            .filter(|(part, n)| speaks(part) || (silent && *n as usize == self.idle))
            .map(|(part, shard)| Part {
                shard,
                body: part.encode_to_vec(),
            })
            .collect()
    }

    /// What becomes of an object's answer to a source that runs this revision.
    ///
    /// A source never goes back to older rules: it would never settle, with two
    /// objects of which one is behind. Where the rules are those of an aggregator
    /// above, no object is told any, and rules that the source was deployed with give
    /// way to whatever is in force there.
    #[must_use]
    pub fn hear(&mut self, shard: u32, body: Vec<u8>, revision: u64) -> Heard {
        let Ok(mut reply) = SyncReply::decode(body.as_slice()) else {
            return Heard::Reply(body);
        };
        if !self.above && reply.rules_revision < revision {
            return Heard::Outdated;
        }
        let shard = self.shards.get_mut(shard as usize);
        let before = shard.map_or(0, |shard| {
            shard.heard_us = shard.heard_us.max(reply.now_us);
            core::mem::replace(&mut shard.revision, reply.rules_revision)
        });
        // One that has gone back itself is not behind: the aggregator above has.
        let is_behind = reply.rules_revision < self.revision && before <= reply.rules_revision;
        if self.above && is_behind {
            reply.rules = None;
            return Heard::Reply(reply.encode_to_vec());
        }
        self.revision = reply.rules_revision;
        Heard::Reply(body)
    }

    /// An object has not answered: a message that says nothing goes to the next one.
    pub fn miss(&mut self, shard: u32) {
        if self.idle == shard as usize {
            let next = self.idle.saturating_add(1);
            self.idle = next.checked_rem(self.shards.len()).unwrap_or(0);
        }
    }

    /// The object that has this partition.
    fn of(&self, partition: u32) -> usize {
        partition as usize % self.shards.len().max(1)
    }
}

/// A message without anything in it.
fn head(request: &SyncRequest, shard: &Shard) -> SyncRequest {
    SyncRequest {
        heard_us: shard.heard_us,
        ..cut::head(request)
    }
}

#[cfg(test)]
mod tests;
