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

use super::{
    admission::{Admission, Permit, WatchPermit},
    counters::{CounterRequest, Watching},
    rules::{RuleChange, RulesOnRecord},
    work::{Answer, Check, Checked, Event, Refusal, Request},
};
use crate::serve::health::{Health, HealthBoard};

/// Asks the ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::serve) struct LedgerHandle {
    pub(super) events: mpsc::Sender<Event>,
    pub(super) admission: Admission,
    pub(super) health: Arc<HealthBoard>,
    pub(super) patience: Duration,
}

impl LedgerHandle {
    /// Makes room for a request whose body has so many bytes.
    pub(in crate::serve) fn admit(&self, bytes: u32) -> Result<Permit, Refusal> {
        match self.health.read() {
            Health::Serving { .. } | Health::Stalled(_) => self.admission.enter(bytes),
            other => Err(Refusal::Unready(other.obstacle().unwrap_or_default())),
        }
    }

    /// Makes room for a request that changes nothing: with the disk full, too.
    pub(in crate::serve) fn admit_read(&self) -> Result<Permit, Refusal> {
        match self.health.read() {
            Health::Serving { .. } | Health::Stalled(_) | Health::NoRoom(_) => {
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
        self.ask(|answer| Event::Request(Request::Sync(message, answer), permit.queued()))
            .await
    }

    /// Decides a request. The answer comes once it is durable.
    pub(in crate::serve) async fn check(
        &self,
        check: Check,
        permit: Permit,
    ) -> Result<Checked, Refusal> {
        self.ask(|answer| Event::Request(Request::Check(check, answer), permit.queued()))
            .await
    }

    /// Adds to counters, each add by itself and in order. The answer comes once
    /// all of it is durable.
    pub(in crate::serve) async fn add(
        &self,
        adds: Vec<Add>,
        permit: Permit,
    ) -> Result<Vec<Result<Added, AddError>>, Refusal> {
        self.ask_counters(|answer| CounterRequest::Add(adds, answer), permit)
            .await
    }

    /// What a counter is, as far as that is durable; none: never written.
    pub(in crate::serve) async fn read(
        &self,
        id: CounterId,
        permit: Permit,
    ) -> Result<Option<Counter>, Refusal> {
        self.ask_counters(|answer| CounterRequest::Read(id, answer), permit)
            .await
    }

    /// Makes a counter zero.
    pub(in crate::serve) async fn reset(
        &self,
        id: CounterId,
        permit: Permit,
    ) -> Result<Counter, Refusal> {
        self.ask_counters(|answer| CounterRequest::Reset(id, answer), permit)
            .await
    }

    /// Makes a counter one that was never written. Answers with what it was.
    pub(in crate::serve) async fn delete(
        &self,
        id: CounterId,
        permit: Permit,
    ) -> Result<Option<Counter>, Refusal> {
        self.ask_counters(|answer| CounterRequest::Delete(id, answer), permit)
            .await
    }

    /// What a counter is, and a way to hear what it comes to be.
    pub(in crate::serve) async fn watch(
        &self,
        id: CounterId,
        permit: Permit,
    ) -> Result<Watching, Refusal> {
        self.ask_counters(|answer| CounterRequest::Watch(id, answer), permit)
            .await
    }

    async fn ask_counters<T>(
        &self,
        request: impl FnOnce(Answer<T>) -> CounterRequest,
        permit: Permit,
    ) -> Result<T, Refusal> {
        self.ask(|answer| Event::Request(Request::Counter(request(answer)), permit.queued()))
            .await
    }

    /// Puts rules in force unless they are already. Answers with the revision in
    /// force once that is durable.
    pub(in crate::serve) async fn set_rules(&self, change: RuleChange) -> Result<u64, Refusal> {
        let change = Box::new(change);
        self.ask(|answer| Event::Rules(change, answer)).await
    }

    /// The rules in force, once they are durable.
    pub(in crate::serve) async fn rules(&self) -> Result<RulesOnRecord, Refusal> {
        self.ask(Event::ReadRules).await
    }

    /// Brings the gauges up to date; gives up if the ledger has no time.
    pub(in crate::serve) async fn observe(&self) {
        if self.health.read() == Health::Recovering {
            return;
        }
        let (done, observed) = oneshot::channel();
        if self.events.send(Event::Observe(done)).is_ok() {
            let _ = timeout(Duration::from_secs(1), observed).await;
        }
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

    /// Ends every watch: nothing else would, as long as its reader stays.
    pub(in crate::serve) fn end_watches(&self) {
        // With the task, the watches have ended.
        let _ = self.events.send(Event::EndWatches);
    }

    /// Ends the task once it has answered everything it was asked before.
    pub(in crate::serve) fn stop(&self) {
        // A task that has ended needs no stopping.
        let _ = self.events.send(Event::Stop);
    }

    async fn ask<T>(&self, event: impl FnOnce(Answer<T>) -> Event) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let gone = || Refusal::Unready("the service is stopping".to_owned());
        self.events.send(event(answer)).map_err(|_| gone())?;
        match timeout(self.patience, answered).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(gone())),
            Err(_) => Err(Refusal::Late(self.patience)),
        }
    }
}
