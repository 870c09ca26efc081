//! The way to the ledger's task, for everyone else.

use std::{
    collections::BTreeSet,
    sync::{Arc, mpsc},
    time::Duration,
};

use limiter::{
    counter::{Add, AddError, Added, Counter, CounterId},
    request::Hit,
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
        // Those of several groups do not come together.
        let first = adds.first().map(|add| group_of(add.id.partition()));
        let group = first.unwrap_or(RULES_GROUP);
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
        if let Check::Part { group, .. } = check {
            return Ok(*group);
        }
        let (query, _) = resolve(&groups.rules(), check)?;
        let of = |hit: &Hit| group_of(hit.key.partition());
        let several: BTreeSet<u32> = query.hits.iter().map(of).collect();
        match several.first() {
            None => Ok(groups.any_here().unwrap_or(RULES_GROUP)),
            Some(group) if several.len() == 1 => Ok(*group),
            Some(_) => {
                let groups = several.into_iter().collect();
                Err(Refusal::Apart { groups })
            }
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
        self.ask_all(Event::Observe, Duration::from_secs(1)).await.0
    }

    /// Whether the ledger still does anything: every task that is here has a moment within
    /// this time. True while the log is read, which takes what it takes. Costs the ledger
    /// next to nothing: anybody may ask.
    pub(in crate::serve) async fn moves(&self, within: Duration) -> bool {
        self.ask_all(Event::Ping, within).await.1
    }

    /// Asks every task that is here; the metrics of each group of these, and whether all of
    /// them had the time.
    async fn ask_all(
        &self,
        event: fn(oneshot::Sender<()>) -> Event,
        within: Duration,
    ) -> (Vec<Arc<Metrics>>, bool) {
        if self.health.read() == Health::Recovering {
            return (Vec::new(), true);
        }
        let (tasks, metrics) = match &self.to {
            To::All(events) => (vec![events.clone()], Vec::new()),
            To::Groups(groups) => groups.locals().into_iter().unzip(),
        };
        let asked = tasks.into_iter().map(|task| {
            let (done, answered) = oneshot::channel();
            // With the task, what it would answer with is dropped.
            let _ = task.send(event(done));
            answered
        });
        let asked: Vec<_> = asked.collect();
        let all = async {
            for answered in asked {
                // One that has ended has nothing to show.
                let _ = answered.await;
            }
        };
        let in_time = timeout(within, all).await.is_ok();
        (metrics, in_time)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limits, Settings};

    #[test]
    fn a_ledger_that_does_nothing_any_more_is_found_out() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let (events, asked) = mpsc::channel();
        let handle = LedgerHandle {
            to: To::All(events),
            admission: Admission::new(&Limits::try_from(&Settings::default()).unwrap()),
            health: Arc::new(HealthBoard::new()),
            patience: Duration::ZERO,
        };
        let soon = Duration::from_millis(1);
        let moves = || runtime.block_on(handle.moves(soon));
        assert!(moves(), "while its log is read");
        handle.health.set(Health::Serving { rules_revision: 1 });
        assert!(!moves(), "nobody takes what it is told");
        drop(asked);
        assert!(moves(), "it has ended in order");
    }
}
