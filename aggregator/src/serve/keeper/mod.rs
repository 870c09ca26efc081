//! The keeper: a thread that keeps this member's place among those who share a store.
//!
//! A few times a second it says that the member is there, which renews the leases of its
//! groups, and looks who else is. It claims groups that should be this member's and have
//! no owner, hands over those that should be another's, and lets go at once of what the
//! store says is not its own any more. It also carries rules: from the group that
//! numbers them to the store, and from there to the groups that are here.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use limiter::{
    ruleset::RuleSet,
    time::{Micros, Timestamp},
    wire,
};
use prost::Message;
use tokio::sync::oneshot;

mod assign;

use self::assign::assign;
use super::{
    clock::SystemClock,
    health::{Health, HealthBoard},
    metrics::Metrics,
    task::{Groups, Kept, Place, Setup, Shown, TaskError},
};
use crate::{
    chain::chain,
    config::Config,
    shared::{
        self, Claim, Engine, EngineError, Fence, GROUPS, Link, Member, RULES_GROUP, StoreUrl, View,
    },
};

/// How long a group that could not be taken over is left alone.
const RETRY: Micros = Micros::from_secs(1);

/// How long groups may take to end before they are given up.
const ENDING: Micros = Micros::from_secs(8);

/// What a member does about its groups.
pub(super) struct Keeper {
    engine: Box<dyn Engine>,
    url: StoreUrl,
    me: Member,
    groups: Arc<Groups>,
    held: BTreeMap<u32, Held>,
    /// Groups that could not be taken over, and until when they are left alone.
    shunned: BTreeMap<u32, Timestamp>,
    config: Config,
    shown: Shown,
    joined: bool,
    /// Set once it is to hand over everything.
    leaving: Option<Timestamp>,
}

struct Held {
    fence: Fence,
    kept: Kept,
    /// To another member, or because the service ends.
    handing_over: bool,
}

/// What the keeper is told.
enum Word {
    /// Hand over everything, and say when that is done.
    Leave(oneshot::Sender<()>),
    /// End.
    End,
}

/// The way to the keeper.
pub(super) struct KeeperHandle(mpsc::Sender<Word>, thread::JoinHandle<()>);

impl KeeperHandle {
    /// Hands over every group, and comes back when that is done.
    pub(super) async fn leave(&self) {
        let (left, done) = oneshot::channel();
        if self.0.send(Word::Leave(left)).is_ok() {
            // A keeper that is gone keeps nothing.
            let _ = done.await;
        }
    }

    /// Ends it.
    pub(super) fn end(self) {
        // One that is gone has ended; a panic in it is logged.
        let _ = self.0.send(Word::End);
        let _ = self.1.join();
    }
}

impl Keeper {
    /// One that has not begun yet. `url` is where others reach this member.
    pub(super) fn new(
        store: &StoreUrl,
        url: String,
        groups: &Arc<Groups>,
        config: &Config,
        shown: Shown,
    ) -> io::Result<Self> {
        let id = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let id = format!("{id:016x}");
        Ok(Self {
            engine: shared::open(store, &config.region),
            url: store.clone(),
            me: Member { id, url },
            groups: Arc::clone(groups),
            held: BTreeMap::new(),
            shunned: BTreeMap::new(),
            config: config.clone(),
            shown,
            joined: false,
            leaving: None,
        })
    }

    /// What the other members know it by.
    pub(super) fn member(&self) -> &Member {
        &self.me
    }

    /// Starts the thread.
    pub(super) fn start(mut self) -> io::Result<KeeperHandle> {
        let (words, told) = mpsc::channel();
        let keep = move || {
            let mut left: Option<oneshot::Sender<()>> = None;
            loop {
                self.beat();
                if self.leaving.is_some() && self.held.is_empty() {
                    // Whoever waited may have gone away.
                    let _ = left.take().map(|left| left.send(()));
                }
                match told.recv_timeout(self.pause()) {
                    Ok(Word::Leave(done)) => {
                        left = Some(done);
                        self.leave();
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Ok(Word::End) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
            }
            self.farewell();
        };
        let thread = thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(keep)?;
        Ok(KeeperHandle(words, thread))
    }

    /// Time between two beats: a lease is renewed a dozen times before it ends.
    fn pause(&self) -> Duration {
        let beat =
            (self.url.lease / 15).clamp(Duration::from_millis(50), Duration::from_millis(200));
        if self.held.values().any(|held| held.handing_over) {
            return beat / 5;
        }
        beat
    }

    fn beat(&mut self) {
        self.bury();
        let held: Vec<(u32, Fence)> = self
            .held
            .iter()
            .map(|(group, held)| (*group, held.fence.clone()))
            .collect();
        let asked = self.groups.now();
        match self.engine.beat(&self.me, &held, self.url.lease) {
            Ok(view) => {
                // The store's clock may run a little slower than this one.
                self.groups.lease(asked, self.url.lease * 9 / 10);
                self.look(&view);
            }
            Err(error) => self.away(&error),
        }
        let owned = i64::try_from(self.held.len()).unwrap_or(i64::MAX);
        self.shown.metrics.cluster.groups_owned.set(owned);
    }

    fn away(&mut self, error: &EngineError) {
        self.shown.metrics.cluster.store_failures.inc();
        let why = chain(error);
        let away = Health::Away(why.clone());
        if !matches!(self.shown.health.read(), Health::Away(_)) {
            tracing::error!(error = why, "the shared store cannot be reached");
        }
        self.shown.health.set(away);
    }

    /// Acts on what the store says.
    fn look(&mut self, view: &View) {
        for group in &view.lost {
            self.lose(*group, "the store says that it has another owner");
        }
        for (group, owner) in (0_u32..).zip(&view.owners) {
            self.groups.set_owner(group, owner.as_ref());
        }
        let mut members = view.members.clone();
        // Who is leaving has no address any more.
        members.retain(|member| !member.url.is_empty());
        members.sort_unstable();
        let assigned = assign(&members);
        for (group, place) in (0..GROUPS).zip(assigned) {
            let should = place.and_then(|place| members.get(place));
            let owner = view.owners.get(group as usize).cloned().flatten();
            self.settle(group, should, owner.as_ref());
        }
        self.carry_rules(view.rules_revision);
        self.report(view);
    }

    /// Brings one group closer to who should have it.
    fn settle(&mut self, group: u32, should: Option<&Member>, owner: Option<&Member>) {
        let mine = should.is_some_and(|member| member.id == self.me.id);
        match self.held.get_mut(&group) {
            Some(held) if (should.is_some() || self.leaving.is_some()) && !mine => {
                if !held.handing_over {
                    held.handing_over = true;
                    self.groups.let_go(group);
                    held.kept.stop();
                }
            }
            None if mine && self.leaving.is_none() => {
                let nobody = owner.is_none_or(|owner| owner.id == self.me.id);
                let shunned = self.shunned.get(&group);
                if nobody && shunned.is_none_or(|until| self.groups.now() > *until) {
                    self.claim(group);
                }
            }
            _ => {}
        }
    }

    fn claim(&mut self, group: u32) {
        let nonce = match getrandom::u64() {
            Ok(nonce) => nonce,
            Err(error) => {
                tracing::error!(%error, "there is no randomness");
                return;
            }
        };
        match self.engine.claim(group, &self.me, nonce, self.url.lease) {
            Ok(Some(claim)) => self.take(group, claim),
            Ok(None) => {}
            Err(error) => self.away(&error),
        }
    }

    fn take(&mut self, group: u32, claim: Claim) {
        let fence = claim.fence.clone();
        let engine = shared::open(&self.url, &self.config.region);
        let setup = Setup {
            place: Place::Shared(Link::new(engine, group, fence.clone()), claim),
            clock: Box::new(SystemClock::start()),
            shown: Shown {
                metrics: Arc::new(Metrics::new(&self.config.region)),
                health: Arc::new(HealthBoard::new()),
                carrier: self.shown.carrier.clone(),
            },
        };
        match self.groups.take(group, setup, &self.config) {
            Ok(kept) => {
                tracing::info!(group, fence = fence.0, "took over partitions");
                let handing_over = false;
                let held = Held {
                    fence,
                    kept,
                    handing_over,
                };
                self.held.insert(group, held);
            }
            Err(error) => {
                tracing::error!(group, error = chain(&error), "cannot take over partitions");
                // Its lease ends by itself.
                self.shun(group);
            }
        }
    }

    fn shun(&mut self, group: u32) {
        self.shunned.insert(group, self.groups.now().after(RETRY));
    }

    /// Lets go of a group that is another's.
    fn lose(&mut self, group: u32, why: &str) {
        let Some(held) = self.held.remove(&group) else {
            return;
        };
        tracing::warn!(
            group,
            why,
            "lost partitions; what was not written is dropped"
        );
        self.shown.metrics.cluster.fence_losses.inc();
        self.groups.let_go(group);
        held.kept.abandon();
    }

    /// Deals with tasks that have ended.
    fn bury(&mut self) {
        let groups: Vec<u32> = self.held.keys().copied().collect();
        for group in groups {
            let Some(held) = self.held.get_mut(&group) else {
                continue;
            };
            match held.kept.ended() {
                None => {}
                Some(Ok(())) => self.give_back(group),
                Some(Err(error)) => self.failed(group, &error),
            }
        }
        let late = |since: Timestamp| self.groups.now().since(since) > ENDING;
        if self.leaving.is_some_and(late) {
            for held in self.held.values() {
                held.kept.abandon();
            }
        }
    }

    fn give_back(&mut self, group: u32) {
        let Some(held) = self.held.remove(&group) else {
            return;
        };
        self.groups.let_go(group);
        match self.engine.release(group, &held.fence) {
            Ok(()) => tracing::info!(group, "handed over partitions"),
            // The lease ends by itself.
            Err(error) => self.away(&error),
        }
    }

    fn failed(&mut self, group: u32, error: &TaskError) {
        let fenced = matches!(error, TaskError::Commit(failure) if is_fenced(failure));
        if fenced {
            self.lose(group, "an append was refused");
            return;
        }
        if !matches!(error, TaskError::Abandoned) {
            tracing::error!(
                group,
                error = chain(error),
                "partitions failed; reading them again"
            );
        }
        self.shun(group);
        self.give_back(group);
    }

    /// From the group that numbers them to the store, and from there to all others.
    fn carry_rules(&mut self, known_to_store: u64) {
        let held = self.held.get_mut(&RULES_GROUP);
        if let Some(rules) = held.and_then(|held| held.kept.rules_on_record())
            && rules.revision > known_to_store
        {
            let published = self
                .engine
                .publish_rules(rules.revision, &rules.encode_to_vec());
            if let Err(error) = published {
                self.away(&error);
            }
            self.spread(rules);
        } else if known_to_store > self.groups.rules().revision {
            match self.engine.rules() {
                Ok(bytes) => {
                    let rules = bytes.and_then(|bytes| wire::RuleSet::decode(&*bytes).ok());
                    rules.into_iter().for_each(|rules| self.spread(rules));
                }
                Err(error) => self.away(&error),
            }
        }
    }

    fn spread(&self, rules: wire::RuleSet) {
        match RuleSet::try_from(rules) {
            Ok(rules) => self.groups.set_rules(&Arc::new(rules)),
            Err(error) => tracing::error!(%error, "the rules in the shared store are refused"),
        }
    }

    fn report(&mut self, view: &View) {
        self.joined |= view.owners.iter().all(Option::is_some);
        let rules_revision = self.groups.rules().revision;
        self.shown.health.set(match (self.leaving, self.joined) {
            (Some(_), _) => Health::Leaving,
            (None, true) => Health::Serving { rules_revision },
            (None, false) => Health::Joining,
        });
        self.groups.remind();
    }

    fn leave(&mut self) {
        self.leaving = Some(self.groups.now());
        // Nobody gives anything to who has no address.
        self.me.url.clear();
    }

    fn farewell(&mut self) {
        for (group, held) in std::mem::take(&mut self.held) {
            self.groups.let_go(group);
            held.kept.abandon();
        }
        if let Err(error) = self.engine.leave(&self.me) {
            tracing::info!(error = chain(&error), "left without a word");
        }
    }
}

const fn is_fenced(failure: &super::task::CommitFailure) -> bool {
    matches!(
        failure,
        super::task::CommitFailure::Shared(EngineError::Fenced)
    )
}
