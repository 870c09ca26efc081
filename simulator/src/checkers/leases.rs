//! No source spends a lease that has expired.
//!
//! Kept from the replies that reached it: what it was lent last, and until when
//! by its own clock, for that is what a lease's time is counted by.

use std::collections::HashMap;

use limiter::{
    key::CounterKey,
    time::{Micros, Timestamp},
};

use crate::region::Reply;

/// When the lease of each source and key expires, by the source's clock.
#[derive(Default)]
pub(crate) struct Leases {
    latest: HashMap<(usize, CounterKey), Lease>,
}

#[derive(Clone, Copy)]
struct Lease {
    /// Which message it answers: an answer to an earlier one, if it comes later,
    /// is void.
    message: u64,
    expires: Timestamp,
}

impl Leases {
    /// A reply has reached a source: its leases replace those before.
    pub(crate) fn granted(&mut self, source: usize, reply: &Reply) {
        let sent_at = Timestamp::from_micros(reply.message.sent_at_us);
        for group in &reply.message.leases {
            let keys = group.keys.as_chunks::<16>().0.iter();
            for (place, key) in keys.enumerate() {
                let ttl = group.ttl_ms.get(place).copied().unwrap_or_default();
                let expires = sent_at.after(Micros::from_millis(ttl));
                let message = reply.message.message;
                let lease = Lease { message, expires };
                let name = (source, CounterKey::from_bytes(*key));
                let known = self.latest.entry(name).or_insert(lease);
                if known.message <= message {
                    *known = lease;
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
