//! No source spends a lease that has expired.
//!
//! Kept from the replies that reached it: what it was lent last, and until when
//! by the region's clock, which is the true one here.

use std::collections::HashMap;

use limiter::{
    key::CounterKey,
    time::{Micros, Timestamp},
};

use crate::{region::Reply, setup::Setup};

/// When the lease of each source and key expires.
pub(crate) struct Leases {
    expires: HashMap<(usize, CounterKey), Timestamp>,
    /// How wrong a source may be about the region's clock: no more than the
    /// longest that a message takes in order.
    slack: Micros,
}

impl Leases {
    /// No leases yet.
    pub(crate) fn new(setup: &Setup) -> Self {
        let trip = setup.path.round_trip.plus(setup.path.jitter);
        Self {
            expires: HashMap::new(),
            slack: trip.plus(setup.commit),
        }
    }

    /// A reply has reached a source: its leases replace those before.
    pub(crate) fn granted(&mut self, source: usize, reply: &Reply) {
        let now = Timestamp::from_micros(reply.message.now_us);
        let groups = reply.message.acks.iter().flat_map(|ack| &ack.leases);
        for group in groups {
            let keys = group.keys.as_chunks::<16>().0.iter();
            for (place, key) in keys.enumerate() {
                let ttl = group.ttl_ms.get(place).copied().unwrap_or_default();
                let expires = now.after(Micros::from_millis(ttl));
                let lease = (source, CounterKey::from_bytes(*key));
                self.expires.insert(lease, expires);
            }
        }
    }

    /// A source has spent of its lease. What is wrong with that, if anything.
    pub(crate) fn spent(&self, source: usize, key: CounterKey, now: Timestamp) -> Option<String> {
        let Some(expires) = self.expires.get(&(source, key)) else {
            return Some(format!("source {source} spent a lease it never got"));
        };
        let late = now.since(expires.after(self.slack));
        (late > Micros::ZERO)
            .then(|| format!("source {source} spent a lease that had expired {late} before"))
    }
}
