//! What a caller may choose: sizes, and how durable a commit is.

/// How far a commit goes before it returns. Later is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Handed to the operating system: survives the death of this process,
    /// not the loss of power.
    Written,
    /// Synced to the device: survives the loss of power.
    Fsynced,
}

/// The limits of one log. A limit is never "none".
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A segment that has reached this many bytes is followed by a new one.
    /// A segment may be larger by one batch. Default 64 MiB.
    pub segment_bytes_max: u64,
    /// The longest record, in bytes; at most 1 GiB. Default 16 MiB.
    pub record_bytes_max: u32,
    /// The most bytes that wait for a commit, in flight included. At least
    /// one record always fits. At most 1 GiB. Default 64 MiB.
    pub buffer_bytes_max: u32,
    /// A snapshot is synced each time this many bytes were written, so that
    /// its last sync does not hold up the log's. Default 8 MiB.
    pub snapshot_sync_bytes: u64,
}

/// Over this, a batch's length would not fit its field.
const BATCH_BYTES_MAX: u32 = 1 << 30;

impl Options {
    /// The same with sizes that the format can hold.
    pub(super) fn bounded(mut self) -> Self {
        self.record_bytes_max = self.record_bytes_max.min(BATCH_BYTES_MAX);
        self.buffer_bytes_max = self.buffer_bytes_max.min(BATCH_BYTES_MAX);
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        const MIB: u32 = 1 << 20;
        Self {
            segment_bytes_max: 64 * u64::from(MIB),
            record_bytes_max: 16 * MIB,
            buffer_bytes_max: 64 * MIB,
            snapshot_sync_bytes: 8 * u64::from(MIB),
        }
    }
}
