//! The shared store: where several aggregators of one region keep one set of books.
//!
//! The engine is somebody else's, and durable by its own means. What it holds is the
//! same as a data directory does, a log of opaque records and snapshots, once for
//! each *group* of partitions. Beside them stands who owns the group: one member at a
//! time, whose books in memory are the truth while its lease lasts.
//!
//! # Invariants
//!
//! - A group's log grows only under the *fence* of its owner. Each claim makes a new
//!   one that was never given out before, so an owner that was slow, paused or cut off
//!   changes nothing once another has claimed.
//! - An append names the record it follows. One that was sent twice, because its
//!   answer was lost, is on record once; one that does not follow is refused.
//! - Each of these is one script on the engine: whole or not at all, in one round trip.
//! - A lease is measured by the engine's clock. What an owner believes of it, by its
//!   own, begins before it asked.

use core::time::Duration;

mod entry;
mod link;
mod log;
mod redis;
mod snapshot;
mod url;

pub use link::Link;
pub use log::{Finished, LoadError, Pending, SharedLog};
pub use snapshot::{Publication, Published, Sealed, Writer};
pub use url::{StoreUrl, UrlError};

/// Groups of partitions: what is owned and moved as one. Part of the format.
pub const GROUPS: u32 = 16;

/// The group that has the rule book, and numbers the rules.
pub const RULES_GROUP: u32 = 0;

/// The group of a partition.
pub const fn group_of(partition: u32) -> u32 {
    partition % GROUPS
}

/// An aggregator, as the others know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Random, and new with every start.
    pub id: String,
    /// Where the others reach it, as in `http://10.0.0.7:8080`.
    pub url: String,
}

/// What an owner shows with all that it writes; never given out twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence(pub String);

/// A group that was claimed.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What its new owner has to show.
    pub fence: Fence,
    /// The number of its last record.
    pub last: u64,
    /// Entries of its log that snapshots have replaced since it began.
    pub dropped: u64,
}

/// Who is there, as of one beat.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Every member that was heard of in time.
    pub members: Vec<Member>,
    /// Who owns each group; none: nobody, or somebody whose lease has ended.
    pub owners: Vec<Option<Member>>,
    /// Groups that were said to be held and are not.
    pub lost: Vec<u32>,
    /// The revision of the rules that were made known.
    pub rules_revision: u64,
}

/// One of the two lists that a group is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Chunks of the latest snapshot.
    Snapshot,
    /// What was appended since, and perhaps a little before.
    Log,
}

/// Why the engine did not do as it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It did not answer, or said that it cannot now. Whether it has done it is not known.
    #[error("the store does not answer: {0}")]
    Away(String),
    /// It has done it, and too few replicas hold it yet.
    #[error("{held} replicas of the store hold it; wait={wanted} asks for more")]
    Unreplicated {
        /// As many do.
        held: u64,
        /// As many are asked for.
        wanted: u32,
    },
    /// Another member has claimed the group.
    #[error("another member owns these partitions now")]
    Fenced,
    /// The log in the store ends elsewhere than it did.
    #[error("the log in the store ends with record {found}, not {expected}: it has lost some")]
    Gap {
        /// The last record that was known to be there.
        expected: u64,
        /// The last that is.
        found: u64,
    },
    /// What is there is not of this program, or of another release of it.
    #[error("the store holds something else: {0}")]
    Foreign(String),
}

impl EngineError {
    /// Whether the same may succeed later, with nothing having changed hands.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Unreplicated { .. })
    }
}

/// An append: whole, or nothing of it.
#[derive(Clone, Copy, Debug)]
pub struct Append<'a> {
    /// The record that it follows.
    pub after: u64,
    /// Its last record.
    pub last: u64,
    /// Its bytes.
    pub entry: &'a [u8],
}

/// A store that members share. Each method waits for it, but not for ever.
pub trait Engine: Send {
    /// Says that a member is there and holds these groups, for another `lease`.
    fn beat(
        &mut self,
        me: &Member,
        held: &[(u32, Fence)],
        lease: Duration,
    ) -> Result<View, EngineError>;

    /// Says that a member has gone.
    fn leave(&mut self, me: &Member) -> Result<(), EngineError>;

    /// Claims a group that nobody owns; none if somebody does. `nonce` is random.
    fn claim(
        &mut self,
        group: u32,
        me: &Member,
        nonce: u64,
        lease: Duration,
    ) -> Result<Option<Claim>, EngineError>;

    /// Gives a group back, for anyone to claim at once.
    fn release(&mut self, group: u32, fence: &Fence) -> Result<(), EngineError>;

    /// Appends to a group's log. To be sent again, unchanged, after a transient error.
    fn append(&mut self, group: u32, fence: &Fence, append: Append<'_>) -> Result<(), EngineError>;

    /// Some entries of a list, from the one at `from`; empty at its end.
    fn page(&mut self, group: u32, list: List, from: u64) -> Result<Vec<Vec<u8>>, EngineError>;

    /// Begins a snapshot: forgets one that was not published.
    fn begin_snapshot(&mut self, group: u32, fence: &Fence) -> Result<(), EngineError>;

    /// Adds a chunk to the snapshot that was begun.
    fn put_snapshot(&mut self, group: u32, fence: &Fence, chunk: &[u8]) -> Result<(), EngineError>;

    /// Puts the snapshot called `name` in place of the one before, and of the log's first
    /// `entries` since the group began. To be sent again after a transient error.
    fn publish_snapshot(
        &mut self,
        group: u32,
        fence: &Fence,
        name: &str,
        entries: u64,
    ) -> Result<(), EngineError>;

    /// Makes rules known to all members, unless later ones are.
    fn publish_rules(&mut self, revision: u64, rules: &[u8]) -> Result<(), EngineError>;

    /// The rules that were made known last.
    fn rules(&mut self) -> Result<Option<Vec<u8>>, EngineError>;
}

/// The engine that a URL names, for one region. It connects once it is needed.
pub fn open(url: &StoreUrl, region: &str) -> Box<dyn Engine> {
    Box::new(redis::Redis::new(url, region))
}
