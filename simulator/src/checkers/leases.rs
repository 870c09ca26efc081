//! No source spends a lease that has expired.
//!
//! Kept from the replies that reached it: what it was lent last, and until when
//! by its own clock, for that is what a lease's time is counted by.

use std::collections::HashMap;

use limiter::{
    key::CounterKey,
    time::{Micros, Timestamp},
    wire::SyncRequest,
};

use crate::region::Reply;

/// When the lease of each source and key expires, by the source's clock.
#[derive(Default)]
pub(crate) struct Leases {
    latest: HashMap<(usize, CounterKey), Lease>,
    /// The latest message that claimed a key: an answer to an earlier one is void.
    claimed: HashMap<(usize, CounterKey), u64>,
}

#[derive(Clone, Copy)]
struct Lease {
    expires: Timestamp,
}

impl Leases {
    /// A source has sent a message.
    pub(crate) fn claimed(&mut self, source: usize, request: &SyncRequest) {
        let groups = request.claims.iter();
        let keys = groups.flat_map(|group| group.keys.as_chunks::<16>().0);
        for key in keys {
            let name = (source, CounterKey::from_bytes(*key));
            self.claimed.insert(name, request.message);
        }
    }

    /// A reply has reached a source: its leases replace those before.
    pub(crate) fn granted(&mut self, source: usize, reply: &Reply) {
        let sent_at = Timestamp::from_micros(reply.message.sent_at_us);
        for group in &reply.message.leases {
            let keys = group.keys.as_chunks::<16>().0.iter();
            for (place, key) in keys.enumerate() {
                let ttl = group.ttl_ms.get(place).copied().unwrap_or_default();
                let expires = sent_at.after(Micros::from_millis(ttl));
                let name = (source, CounterKey::from_bytes(*key));
                let claimed = self.claimed.get(&name);
                if claimed == Some(&reply.message.message) {
                    self.latest.insert(name, Lease { expires });
                }
            }
        }
    }

    /// A source has spent of its lease, at `local` by its clock. What is wrong
    /// with that, if anything.
    pub(crate) fn spent(&self, source: usize, key: CounterKey, local: Timestamp) -> Option<String> {
        let Some(lease) = self.latest.get(&(source, key)) else {
            return Some(format!("source {source} spent a lease it never got"));
        };
        let late = local.since(lease.expires);
        (late > Micros::ZERO)
            .then(|| format!("source {source} spent a lease that had expired {late} before"))
    }
}
