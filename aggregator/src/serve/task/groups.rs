//! The groups of a shared store as one member sees them: which are its own, who has the
//! others, and until when it may believe that.
//!
//! Invariant: nothing is answered from a group's memory once its lease may have ended.
//! That is looked at when the answer is there: so what it tells was true under the lease.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use limiter::{ruleset::RuleSet, time::Timestamp, wire};
use tokio::sync::{oneshot, watch};

use super::{
    RulesOnRecord, Setup, TaskError,
    start::{Started, start_one},
    work::{Event, Refusal},
};
use crate::{
    config::Config,
    serve::{clock::Stopwatch, metrics::Metrics},
    shared::{GROUPS, Member},
};

/// All groups, for everyone to see.
pub(in crate::serve) struct Groups {
    slots: RwLock<Vec<Slot>>,
    rules: RwLock<Arc<RuleSet>>,
    watch: Stopwatch,
    /// Until when the leases of this member's groups last, by its own clock.
    leased_until_us: AtomicU64,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Slot {
    local: Option<Local>,
    owner: Option<Member>,
}

/// A group of this member's.
#[derive(Clone)]
struct Local {
    events: mpsc::Sender<Event>,
    metrics: Arc<Metrics>,
}

/// A group's task, to whoever keeps it.
pub(in crate::serve) struct Kept {
    events: mpsc::Sender<Event>,
    ended: oneshot::Receiver<Result<(), TaskError>>,
    rules: Option<oneshot::Receiver<Result<RulesOnRecord, Refusal>>>,
}

/// Where a group is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Whereabouts {
    Here,
    At(Member),
    /// Nobody has it, as far as is known.
    Nowhere,
}

impl Groups {
    pub(in crate::serve) fn new() -> Self {
        let slots = (0..GROUPS).map(|_| Slot::default()).collect();
        Self {
            slots: RwLock::new(slots),
            rules: RwLock::new(Arc::new(RuleSet::empty())),
            watch: Stopwatch::start(),
            leased_until_us: AtomicU64::new(0),
            changes: watch::Sender::new(0),
        }
    }

    /// Now, on the clock that leases are measured by.
    pub(in crate::serve) fn now(&self) -> Timestamp {
        self.watch.now()
    }

    /// Leases last this long from `asked`, when they were asked for.
    pub(in crate::serve) fn lease(&self, asked: Timestamp, lease: Duration) {
        let micros = u64::try_from(lease.as_micros()).unwrap_or(0);
        let until = asked.as_micros().saturating_add(micros);
        self.leased_until_us.store(until, Ordering::Release);
    }

    /// Whether this member may still answer for its groups.
    pub(in crate::serve) fn is_leased(&self) -> bool {
        self.now().as_micros() < self.leased_until_us.load(Ordering::Acquire)
    }

    /// The rules that all members were told.
    pub(in crate::serve) fn rules(&self) -> Arc<RuleSet> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&rules)
    }

    /// Takes over rules that are newer, and has every group here take them over.
    pub(in crate::serve) fn set_rules(&self, rules: &Arc<RuleSet>) {
        let mut known = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if rules.revision > known.revision {
            *known = Arc::clone(rules);
        }
        drop(known);
        self.remind();
    }

    /// Tells every group here the rules: one that could not write them has to be told
    /// again.
    pub(in crate::serve) fn remind(&self) {
        let rules = self.rules();
        if rules.revision > 0 {
            self.tell(|| Event::Adopt(Arc::clone(&rules)));
        }
    }

    fn read<T>(&self, of: impl FnOnce(&[Slot]) -> T) -> T {
        of(&self.slots.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, group: u32, act: impl FnOnce(&mut Slot)) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get_mut(group as usize) {
            act(slot);
        }
        drop(slots);
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Notes who owns a group.
    pub(in crate::serve) fn set_owner(&self, group: u32, owner: Option<&Member>) {
        let known = self.read(|slots| {
            slots
                .get(group as usize)
                .and_then(|slot| slot.owner.clone())
        });
        if known.as_ref() != owner {
            self.change(group, |slot| slot.owner = owner.cloned());
        }
    }

    /// Starts the task of a group that was claimed. It answers once it has read it.
    pub(in crate::serve) fn take(
        &self,
        group: u32,
        setup: Setup,
        config: &Config,
    ) -> std::io::Result<Kept> {
        let metrics = Arc::clone(&setup.shown.metrics);
        let (events, ended): Started = start_one(setup, config)?;
        let rules = self.rules();
        if rules.revision > 0 {
            // A task that ended says so itself.
            let _ = events.send(Event::Adopt(rules));
        }
        let local = Local {
            events: events.clone(),
            metrics,
        };
        self.change(group, |slot| slot.local = Some(local));
        let rules = None;
        Ok(Kept {
            events,
            ended,
            rules,
        })
    }

    /// Asks nothing more of a group's task.
    pub(in crate::serve) fn let_go(&self, group: u32) {
        self.change(group, |slot| slot.local = None);
    }

    /// Where a group is.
    pub(in crate::serve) fn whereabouts(&self, group: u32) -> Whereabouts {
        let leased = self.is_leased();
        self.read(|slots| match slots.get(group as usize) {
            Some(Slot { local: Some(_), .. }) if leased => Whereabouts::Here,
            Some(Slot {
                local: None,
                owner: Some(owner),
            }) => Whereabouts::At(owner.clone()),
            _ => Whereabouts::Nowhere,
        })
    }

    /// The first group that is here.
    pub(in crate::serve) fn any_here(&self) -> Option<u32> {
        let here = |group: &u32| self.whereabouts(*group) == Whereabouts::Here;
        (0..GROUPS).find(here)
    }

    /// Waits until something of this has changed since `seen`, or for so long.
    pub(in crate::serve) async fn changed(&self, seen: &mut watch::Receiver<u64>, most: Duration) {
        // Nobody minds why the wait has ended.
        let _ = tokio::time::timeout(most, seen.changed()).await;
    }

    /// To be asked for before looking, so that no change is missed.
    pub(in crate::serve) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The way to a group's task, if it is here.
    pub(super) fn sender(&self, group: u32) -> Result<mpsc::Sender<Event>, Refusal> {
        let local = self.read(|slots| slots.get(group as usize)?.local.clone());
        match local {
            Some(local) if self.is_leased() => Ok(local.events),
            _ => Err(Refusal::Elsewhere { group }),
        }
    }

    /// Tells every task that is here.
    pub(super) fn tell(&self, event: impl Fn() -> Event) {
        self.read(|slots| {
            for local in slots.iter().filter_map(|slot| slot.local.as_ref()) {
                // A task that has ended has no use for it.
                let _ = local.events.send(event());
            }
        });
    }

    /// The way to each task that is here, and its metrics.
    pub(super) fn locals(&self) -> Vec<(mpsc::Sender<Event>, Arc<Metrics>)> {
        self.read(|slots| {
            let locals = slots.iter().filter_map(|slot| slot.local.as_ref());
            locals
                .map(|local| (local.events.clone(), Arc::clone(&local.metrics)))
                .collect()
        })
    }
}

impl Kept {
    /// Ends the task once it has answered all that it was asked before.
    pub(in crate::serve) fn stop(&self) {
        // One that has ended needs no stopping.
        let _ = self.events.send(Event::Stop);
    }

    /// Ends the task at once, whatever it has not written.
    pub(in crate::serve) fn abandon(&self) {
        // One that has ended needs no stopping.
        let _ = self.events.send(Event::Abandon);
    }

    /// How the task ended, if it has.
    pub(in crate::serve) fn ended(&mut self) -> Option<Result<(), TaskError>> {
        match self.ended.try_recv() {
            Ok(result) => Some(result),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Err(oneshot::error::TryRecvError::Closed) => {
                Some(Err(TaskError::Gone("a group's task")))
            }
        }
    }

    /// The rules of this group that are on record, if they are told by now; asks for
    /// them again.
    pub(in crate::serve) fn rules_on_record(&mut self) -> Option<wire::RuleSet> {
        let told = match self.rules.as_mut().map(oneshot::Receiver::try_recv) {
            Some(Err(oneshot::error::TryRecvError::Empty)) => return None,
            Some(Ok(Ok(told))) => Some(wire::RuleSet::from(&*told.rules)),
            _ => None,
        };
        let (answer, answered) = oneshot::channel();
        // A task that has ended is seen elsewhere.
        let _ = self.events.send(Event::ReadRules(answer));
        self.rules = Some(answered);
        told
    }
}
