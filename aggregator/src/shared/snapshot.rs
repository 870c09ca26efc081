//! Snapshots of one group: written chunk by chunk beside the one before, then put in its
//! place together with a trim of the log.

use super::{EngineError, Link, SharedLog, entry};
use crate::store::Position;

/// A snapshot that is being written.
pub struct Writer {
    link: Link,
    begun: bool,
    plan: Plan,
}

/// A snapshot that is whole and has no name yet.
pub struct Sealed {
    link: Link,
    plan: Plan,
}

/// A snapshot that is to be put in place.
pub struct Publication(Sealed);

/// What a snapshot replaces.
#[derive(Clone, Debug)]
struct Plan {
    name: String,
    /// The last record that it contains.
    largest: Position,
    /// The log's entries up to this one, counted since the group began.
    entries: u64,
    log_bytes: u64,
}

/// A snapshot that is in place.
pub struct Published(Plan);

impl SharedLog {
    /// Begins a snapshot. Does not touch the store.
    pub fn begin_snapshot(&mut self) -> Writer {
        self.snapshots = self.snapshots.saturating_add(1);
        // No other owner has this position under this fence; with a number of its own
        // for each try.
        let name = format!("{}-{}", self.last(), self.snapshots);
        Writer {
            link: self.link.clone(),
            begun: false,
            plan: Plan {
                name,
                largest: Position::START,
                entries: self.entries,
                log_bytes: self.log_bytes,
            },
        }
    }

    /// Checks that the store has all that the snapshot contains, and gives the
    /// publication to be run elsewhere.
    ///
    /// # Errors
    /// The log is behind; the snapshot comes back, to be tried again after a commit.
    pub fn publish(&self, sealed: Sealed) -> Result<Publication, Sealed> {
        if sealed.plan.largest > self.durable() {
            return Err(sealed);
        }
        Ok(Publication(sealed))
    }

    /// Takes note of a snapshot that is in place.
    pub fn finish_publication(&mut self, published: &Published) {
        let plan = &published.0;
        self.log_bytes = self.log_bytes.saturating_sub(plan.log_bytes);
    }
}

impl Writer {
    /// Writes a part of a partition, or all of it.
    ///
    /// # Errors
    /// As the engine said; the snapshot is then to be given up.
    pub fn shard(
        &mut self,
        partition: u32,
        contains: Position,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        if !self.begun {
            self.link.begin_snapshot()?;
            self.begun = true;
        }
        self.plan.largest = self.plan.largest.max(contains);
        let chunk = entry::chunk(partition, contains, bytes);
        self.link.put_snapshot(&chunk)
    }

    /// All of it is written.
    pub fn seal(self) -> Sealed {
        let Self { link, plan, .. } = self;
        Sealed { link, plan }
    }
}

impl Publication {
    /// Puts it in place, and waits for that.
    ///
    /// # Errors
    /// As the engine said; the one before may still be in place.
    pub fn run(self) -> Result<Published, EngineError> {
        let Sealed { link, plan } = self.0;
        let publish = || link.publish_snapshot(&plan.name, plan.entries);
        // Its answer may have been lost. Doing it twice does no harm.
        match publish() {
            Err(error) if error.is_transient() => publish()?,
            other => other?,
        }
        Ok(Published(plan))
    }
}
