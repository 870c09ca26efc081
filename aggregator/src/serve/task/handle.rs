//! The way to the ledger's task, for everyone else.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use limiter::{
    counter::{Add, AddError, Added, Counter, CounterId},
    wire::{SyncReply, SyncRequest},
};
use tokio::{sync::oneshot, time::timeout};

use super::check::resolve;
use super::{
    Groups,
    admission::{Admission, Permit, WatchPermit},
    counters::{CounterRequest, Watching},
    rules::{RuleChange, RulesOnRecord},
    work::{Answer, Check, Checked, Event, Refusal, Request},
};
use crate::{
    serve::{
        health::{Health, HealthBoard},
        metrics::Metrics,
    },
    shared::{RULES_GROUP, group_of},
};

/// Why adds to counters of several groups are refused.
const APART_ADDS: &str = "these counters are kept by different members of the region; \
    add to each in a request of its own";

/// Why a request under several rules is refused.
const APART_CHECK: &str = "this request is under several rules, whose counts are kept by \
    different members of the region; check it by each rule's name, or at the edge";

/// Asks the ledger. Cheap to clone.
#[derive(Clone)]
pub(in crate::serve) struct LedgerHandle {
    pub(super) to: To,
    pub(super) admission: Admission,
    pub(super) health: Arc<HealthBoard>,
    pub(super) patience: Duration,
}

/// Who is asked.
#[derive(Clone)]
pub(super) enum To {
    /// One task that has all partitions.
    All(mpsc::Sender<Event>),
    /// The tasks of those groups of a shared store that are here.
    Groups(Arc<Groups>),
}

impl To {
    /// The task that has a group.
    fn group(&self, group: u32) -> Result<mpsc::Sender<Event>, Refusal> {
        match self {
            Self::All(events) => Ok(events.clone()),
            Self::Groups(groups) => groups.sender(group),
        }
    }

    /// Tells every task that is here.
    fn tell(&self, event: impl Fn() -> Event) {
        match self {
            // With the task, what it would end has ended.
            Self::All(events) => drop(events.send(event())),
            Self::Groups(groups) => groups.tell(event),
        }
    }

    /// Whether what a task has told may still be believed.
    fn may_answer(&self) -> bool {
        match self {
            Self::All(_) => true,
            Self::Groups(groups) => groups.is_leased(),
        }
    }
}

impl LedgerHandle {
    /// Makes room for a request whose body has so many bytes.
    pub(in crate::serve) fn admit(&self, bytes: u32) -> Result<Permit, Refusal> {
        match self.health.read() {
            health if health.admits() => self.admission.enter(bytes),
            other => Err(Refusal::Unready(other.obstacle().unwrap_or_default())),
        }
    }

    /// Makes room for a request that changes nothing: with the disk full, too.
    pub(in crate::serve) fn admit_read(&self) -> Result<Permit, Refusal> {
        match self.health.read() {
            health if health.admits() || matches!(health, Health::NoRoom(_)) => {
                self.admission.enter(0)
            }
            other => Err(Refusal::Unready(other.obstacle().unwrap_or_default())),
        }
    }

    /// Makes room for one who watches a counter.
    pub(in crate::serve) fn admit_watch(&self) -> Result<WatchPermit, Refusal> {
        self.admission.enter_watch()
    }

    /// Counts a source's message. The answer comes once it is durable.
    pub(in crate::serve) async fn sync(
        &self,
        message: SyncRequest,
        permit: Permit,
    ) -> Result<SyncReply, Refusal> {
        self.sync_group(RULES_GROUP, message, permit).await
    }

    /// Counts the part of a source's message that is a group's.
    pub(in crate::serve) async fn sync_group(
        &self,
        group: u32,
        message: SyncRequest,
        permit: Permit,
    ) -> Result<SyncReply, Refusal> {
        self.ask(group, |answer| {
            Event::Request(Request::Sync(message, answer), permit.queued())
        })
        .await
    }

    /// Decides a request. The answer comes once it is durable.
    pub(in crate::serve) async fn check(
        &self,
        check: Check,
        permit: Permit,
    ) -> Result<Checked, Refusal> {
        let group = self.group_of_check(&check)?;
        self.ask(group, |answer| {
            Event::Request(Request::Check(check, answer), permit.queued())
        })
        .await
    }

    /// Adds to counters, each add by itself and in order. The answer comes once
    /// all of it is durable.
    pub(in crate::serve) async fn add(
        &self,
        adds: Vec<Add>,
        permit: Permit,
    ) -> Result<Vec<Result<Added, AddError>>, Refusal> {
        let mut groups = adds.iter().map(|add| group_of(add.id.partition()));
        let group = groups.next().unwrap_or(RULES_GROUP);
        if matches!(self.to, To::Groups(_)) && groups.any(|other| other != group) {
            return Err(Refusal::Apart(APART_ADDS));
        }
        self.ask_counters(group, |answer| CounterRequest::Add(adds, answer), permit)
            .await
    }

    /// What a counter is, as far as that is durable; none: never written.
    pub(in crate::serve) async fn read(
        &self,
        id: CounterId,
        permit: Permit,
    ) -> Result<Option<Counter>, Refusal> {
        let group = group_of(id.partition());
        self.ask_counters(group, |answer| CounterRequest::Read(id, answer), permit)
            .await
    }

    /// Makes a counter zero.
    pub(in crate::serve) async fn reset(
        &self,
        id: CounterId,
        permit: Permit,
    ) -> Result<Counter, Refusal> {
        let group = group_of(id.partition());
        self.ask_counters(group, |answer| CounterRequest::Reset(id, answer), permit)
            .await
    }

    /// Makes a counter one that was never written. Answers with what it was.
    pub(in crate::serve) async fn delete(
        &self,
        id: CounterId,
        permit: Permit,
    ) -> Result<Option<Counter>, Refusal> {
        let group = group_of(id.partition());
        self.ask_counters(group, |answer| CounterRequest::Delete(id, answer), permit)
            .await
    }

    /// What a counter is, and a way to hear what it comes to be.
    pub(in crate::serve) async fn watch(
        &self,
        id: CounterId,
        permit: Permit,
    ) -> Result<Watching, Refusal> {
        let group = group_of(id.partition());
        self.ask_counters(group, |answer| CounterRequest::Watch(id, answer), permit)
            .await
    }

    async fn ask_counters<T>(
        &self,
        group: u32,
        request: impl FnOnce(Answer<T>) -> CounterRequest,
        permit: Permit,
    ) -> Result<T, Refusal> {
        self.ask(group, |answer| {
            Event::Request(Request::Counter(request(answer)), permit.queued())
        })
        .await
    }

    /// The group that a check is decided in: where its keys are counted.
    fn group_of_check(&self, check: &Check) -> Result<u32, Refusal> {
        let To::Groups(groups) = &self.to else {
            return Ok(RULES_GROUP);
        };
        let (query, _) = resolve(&groups.rules(), check)?;
        let mut hits = query.hits.iter().map(|hit| group_of(hit.key.partition()));
        let Some(group) = hits.next() else {
            return Ok(groups.any_here().unwrap_or(RULES_GROUP));
        };
        match hits.all(|other| other == group) {
            true => Ok(group),
            false => Err(Refusal::Apart(APART_CHECK)),
        }
    }

    /// Puts rules in force unless they are already. Answers with the revision in
    /// force once that is durable.
    pub(in crate::serve) async fn set_rules(&self, change: RuleChange) -> Result<u64, Refusal> {
        let change = Box::new(change);
        self.ask(RULES_GROUP, |answer| Event::Rules(change, answer))
            .await
    }

    /// The rules in force, once they are durable.
    pub(in crate::serve) async fn rules(&self) -> Result<RulesOnRecord, Refusal> {
        self.ask(RULES_GROUP, Event::ReadRules).await
    }

    /// Brings the gauges up to date; gives up if the ledger has no time. Returns the
    /// metrics of the groups that are here, if there are any: each has its own.
    pub(in crate::serve) async fn observe(&self) -> Vec<Arc<Metrics>> {
        if self.health.read() == Health::Recovering {
            return Vec::new();
        }
        let (tasks, metrics) = match &self.to {
            To::All(events) => (vec![events.clone()], Vec::new()),
            To::Groups(groups) => groups.locals().into_iter().unzip(),
        };
        let asked: Vec<_> = tasks.into_iter().map(asked_to_observe).collect();
        let all = async {
            for observed in asked {
                // One that has ended has nothing to show.
                let _ = observed.await;
            }
        };
        let _ = timeout(Duration::from_secs(1), all).await;
        metrics
    }

    /// What the service says of itself.
    pub(in crate::serve) fn health(&self) -> Health {
        self.health.read()
    }

    /// Why requests should go elsewhere; none if they should come.
    pub(in crate::serve) fn obstacle(&self) -> Option<String> {
        self.health.obstacle()
    }

    /// Whether the service is about to stop.
    pub(in crate::serve) fn is_draining(&self) -> bool {
        self.health.is_draining()
    }

    /// Requests under way.
    pub(in crate::serve) fn depth(&self) -> usize {
        self.admission.depth()
    }

    /// Has the aggregator above asked for its rules at once.
    pub(in crate::serve) fn ask_upstream(&self) {
        self.to.tell(|| Event::AskUpstream);
    }

    /// Ends every watch: nothing else would, as long as its reader stays.
    pub(in crate::serve) fn end_watches(&self) {
        self.to.tell(|| Event::EndWatches);
    }

    /// Ends the task once it has answered everything it was asked before.
    pub(in crate::serve) fn stop(&self) {
        self.to.tell(|| Event::Stop);
    }

    async fn ask<T>(
        &self,
        group: u32,
        event: impl FnOnce(Answer<T>) -> Event,
    ) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let gone = || match self.to {
            To::All(_) => Refusal::Unready("the service is stopping".to_owned()),
            To::Groups(_) => Refusal::Moved,
        };
        let task = self.to.group(group)?;
        task.send(event(answer)).map_err(|_| gone())?;
        let answer = match timeout(self.patience, answered).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(gone())),
            Err(_) => Err(Refusal::Late(self.patience)),
        };
        match self.to.may_answer() {
            true => answer,
            false => Err(gone()),
        }
    }
}

fn asked_to_observe(task: mpsc::Sender<Event>) -> oneshot::Receiver<()> {
    let (done, observed) = oneshot::channel();
    // With the task, what it would answer with is dropped.
    let _ = task.send(Event::Observe(done));
    observed
}
