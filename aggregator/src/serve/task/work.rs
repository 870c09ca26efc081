//! What the ledger's task is asked, and what it answers.

use core::time::Duration;
use std::sync::Arc;

use limiter::{
    counter::AddError,
    decision::Decision,
    ledger::SyncError,
    rule::Rule,
    ruleset::RuleSet,
    time::Timestamp,
    wire::{SyncReply, SyncRequest},
};
use tokio::sync::oneshot;

use super::{
    admission::Permit,
    book_log::{Finished, Published, Sealed, SnapshotFailure},
    counters::CounterRequest,
    rules::{RuleChange, RulesOnRecord},
};
use crate::rules::Described;

/// Where an answer goes. Whoever asked may have gone away.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// Something that the task is to react to.
pub(super) enum Event {
    /// A request, and the room that was made for it.
    Request(Request, Permit),
    /// Rules that differ, perhaps, from those in force.
    Rules(Box<RuleChange>, Answer<u64>),
    /// Rules that another group numbered; they are put in force if they are newer.
    Adopt(Arc<RuleSet>),
    /// What is in force, and how it came to be.
    ReadRules(Answer<RulesOnRecord>),
    /// Gauges are to be brought up to date.
    Observe(oneshot::Sender<()>),
    /// Whether anybody is there.
    Ping(oneshot::Sender<()>),
    /// The answer of the aggregator above to this message, or why there is none.
    Upstream(u64, Result<Vec<u8>, String>),
    /// The aggregator above has other rules, perhaps: it is to be asked at once.
    AskUpstream,
    /// A commit has run.
    Committed(Finished),
    /// A snapshot has come further.
    Snapshot(Progress),
    /// A thread that the task relies on has panicked.
    Gone(&'static str),
    /// Nobody is to watch counters any more.
    EndWatches,
    /// No more requests will come.
    Stop,
    /// The partitions are another member's: nothing here counts any more.
    Abandon,
}

/// How far a snapshot has come on its thread.
pub(super) enum Progress {
    /// A partition is written.
    Wrote,
    /// All of it is written and synced.
    Sealed(Result<Sealed, SnapshotFailure>),
    /// It has its name.
    Published(Result<Published, SnapshotFailure>),
}

/// What a client asks of the ledger.
pub(super) enum Request {
    Sync(SyncRequest, Answer<SyncReply>),
    Check(Check, Answer<Checked>),
    Counter(CounterRequest),
}

impl Request {
    pub(super) fn refuse(self, why: Refusal) {
        match self {
            Self::Sync(_, answer) => drop(answer.send(Err(why))),
            Self::Check(_, answer) => drop(answer.send(Err(why))),
            Self::Counter(request) => request.refuse(why),
        }
    }
}

/// A request to be decided here.
#[derive(Clone, Debug)]
pub(in crate::serve) enum Check {
    /// By one rule.
    Named {
        /// The name of the rule.
        rule: String,
        /// The tier that it is of, if that is known.
        tier: Option<String>,
        /// A value for each part of its key.
        key: Vec<String>,
        /// What it spends; the rule's own cost if not said.
        cost: Option<u64>,
    },
    /// By every rule that applies to it.
    Described(Described),
    /// By those of them whose counts a group of a shared store has.
    Part {
        /// The request.
        request: Described,
        /// The group.
        group: u32,
        /// Whether it is only to be said what would be decided.
        look: bool,
    },
}

/// A request that was decided.
#[derive(Clone, Debug)]
pub(in crate::serve) struct Checked {
    /// The rules that it was decided by.
    pub(in crate::serve) rules: Arc<RuleSet>,
    /// The place of the one that was decisive, or that was named; beyond them all if
    /// none applies.
    pub(in crate::serve) place: usize,
    /// When, by the region's clock.
    pub(in crate::serve) now: Timestamp,
    /// Whether it is allowed.
    pub(in crate::serve) allowed: bool,
    /// The numbers behind it.
    pub(in crate::serve) decision: Decision,
}

impl Checked {
    /// The rule that was decisive, or asked for by name; none if none applies.
    pub(in crate::serve) fn rule(&self) -> Option<&Rule> {
        self.rules.rule(self.place)
    }

    /// What it is called.
    pub(in crate::serve) fn rule_name(&self) -> Option<&str> {
        self.rule().map(|rule| &*rule.name)
    }
}

/// Why a request was not answered as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::serve) enum Refusal {
    /// As much is under way as may be.
    #[error("as many requests are under way as the region takes")]
    QueueFull,
    /// Not ready yet, or not any more.
    #[error("{0}")]
    Unready(String),
    /// Another member of a shared store has it, or nobody at present.
    #[error("group {group} of the partitions is not here")]
    Elsewhere {
        /// The group.
        group: u32,
    },
    /// The partitions went to another member while this was under way.
    #[error("the partitions have moved meanwhile; whether it was counted is not known")]
    Moved,
    /// What was asked for is kept in several groups.
    #[error("this is kept in several groups of the partitions")]
    Apart {
        /// Which.
        groups: Vec<u32>,
    },
    /// It could not be made durable, and is kept to be.
    #[error("nothing can be written: {0}; what was asked is kept, and counts once it is written")]
    Kept(String),
    /// The answer did not come in time. It may still be counted.
    #[error("no answer within {} ms; whether it was counted is not known", .0.as_millis())]
    Late(Duration),
    /// A message that means nothing.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// As many watch counters as may.
    #[error("as many watch counters as the region takes (watchers_max)")]
    TooManyWatchers,
    /// A counter cannot be changed like that.
    #[error(transparent)]
    Counter(#[from] AddError),
    /// Rules that were to follow others than those in force.
    #[error("others have changed the rules: revision {revision} is in force")]
    RulesMoved {
        /// In force now.
        revision: u64,
    },
    /// There is no such rule.
    #[error("there is no rule {rule:?}")]
    UnknownRule {
        /// What was asked for.
        rule: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The rule sets no such tier apart.
    #[error("rule {rule:?} says nothing else of a tier {tier:?}")]
    UnknownTier {
        /// The rule.
        rule: String,
        /// What was asked for.
        tier: String,
        /// The tiers that it sets apart.
        known: Vec<String>,
    },
    /// The key has other parts than the rule's.
    #[error("rule {rule:?} has {expected} key values, not {got}")]
    KeyParts {
        /// The rule.
        rule: String,
        /// How many it has.
        expected: usize,
        /// How many came.
        got: usize,
    },
    /// A value is not what the rule counts per.
    #[error("rule {rule:?} does not take this key: a value that must be an address is none, say")]
    KeyValue {
        /// The rule.
        rule: String,
    },
}
