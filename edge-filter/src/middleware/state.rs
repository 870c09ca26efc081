//! The instance's source, and what waits for it.
//!
//! Requests take turns whenever one of them waits. Nothing in here waits, so that no
//! state is ever held across a wait.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use limiter::edge::Identity;
use limiter::time::{Micros, Timestamp};

use super::asked::{Answer, Asked};
use super::exports::types::{Fields, Request};
use super::exports::{now, random};
use super::variables::Variables;
use crate::refusal::{Header, Refusal};
use crate::source::{Effect, Outcome, Source};

/// For how many flush intervals after the last request messages are carried on.
const IDLE_INTERVALS: u64 = 2;

/// How long one who carries messages is believed to, without a sign of it.
const CARRIER_GRACE: Micros = Micros::from_secs(1);

struct State {
    variables: Rc<Variables>,
    source: Source,
    requests: u32,
    token: u32,
    unsent: VecDeque<(u32, Vec<u8>)>,
    /// Held requests whose answer is there.
    decided: BTreeMap<u32, Option<Refusal>>,
    /// Until when somebody carries messages, if nothing is heard of it.
    carried_until: Timestamp,
    /// When the last request came.
    asked_at: Timestamp,
}

thread_local! {
    static STATE: RefCell<Option<Result<State, String>>> = const { RefCell::new(None) };
}

/// What becomes of a request.
pub(super) enum Fate {
    /// It goes on.
    Pass,
    /// It waits until [`decided`] has it.
    Hold,
    /// It is answered.
    Refuse(Refusal),
}

fn with<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    STATE.with(|cell| {
        let mut slot = cell.try_borrow_mut().ok()?;
        slot.as_mut()?.as_mut().ok().map(act)
    })
}

/// Makes the source, before the first request. What is wrong with the settings is wrong
/// for every request.
pub(super) fn start() -> Result<(), String> {
    STATE.with(|cell| {
        let Ok(mut slot) = cell.try_borrow_mut() else {
            return Ok(());
        };
        let made = slot.get_or_insert_with(|| Variables::read().map(State::new));
        made.as_ref().map(drop).map_err(Clone::clone)
    })
}

impl State {
    fn new(variables: Variables) -> Self {
        let [id, a, b, c, d] = [(); 5].map(|()| random());
        let identity = Identity {
            source: id,
            epoch: now().as_micros(),
            pop: variables.config.pop.clone().unwrap_or_default(),
        };
        let mut source = Source::new(identity, variables.config.settings([a, b, c, d]));
        source.set_explain(variables.config.explain.clone());
        Self {
            variables: Rc::new(variables),
            source,
            requests: 0,
            token: 0,
            unsent: VecDeque::new(),
            decided: BTreeMap::new(),
            carried_until: Timestamp::default(),
            asked_at: Timestamp::default(),
        }
    }

    fn timeout(&self) -> Micros {
        Micros::from_millis(u64::from(self.variables.config.timeout_ms))
    }

    fn interval(&self) -> Micros {
        Micros::from_millis(u64::from(self.variables.config.flush_interval_ms))
    }

    /// Carries out what the source wants.
    fn act(&mut self, now: Timestamp) {
        while let Some(effect) = self.source.poll(now) {
            match effect {
                Effect::Send { id, body } => {
                    self.token = self.token.wrapping_add(1);
                    let timeout = self.timeout();
                    self.source.handle_sent(id, Some(self.token), timeout, now);
                    self.unsent.push_back((self.token, body));
                }
                Effect::Resume { request } => {
                    self.decided.insert(request, None);
                }
                Effect::Refuse { request, refusal } => {
                    self.decided.insert(request, Some(refusal));
                }
                // There is no log that a server has to offer.
                Effect::Explain { .. } | Effect::Warn(_) | Effect::Inform(_) => {}
            }
        }
    }
}

/// Whether a request had better wait for the first answer: there are no rules yet, and
/// the region is being asked for them.
pub(super) fn waits_for_rules(now: Timestamp) -> bool {
    with(|state| {
        state.source.handle_tick(now);
        state.act(now);
        state.source.rules().revision == 0 && state.source.is_calling()
    })
    .unwrap_or(false)
}

/// A request has arrived: its number, and what becomes of it.
pub(super) fn request(request: &Request, headers: &Fields, now: Timestamp) -> (u32, Fate) {
    let decide = |state: &mut State| {
        state.requests = state.requests.wrapping_add(1);
        state.asked_at = now;
        let asked = Asked {
            request,
            headers,
            variables: &state.variables,
            now,
        };
        let fate = match state.source.handle_request(state.requests, &asked) {
            Outcome::Pass => Fate::Pass,
            Outcome::Hold => Fate::Hold,
            Outcome::Refuse(refusal) => Fate::Refuse(refusal),
        };
        state.act(now);
        (state.requests, fate)
    };
    with(decide).unwrap_or((0, Fate::Pass))
}

/// What has become of a held request, if anything has.
pub(super) fn decided(request: u32, now: Timestamp) -> Option<Option<Refusal>> {
    with(|state| {
        state.source.handle_tick(now);
        state.act(now);
        state.decided.remove(&request)
    })
    .unwrap_or(Some(None))
}

/// A request has ended without a response, or its client has gone.
pub(super) fn forget(request: u32) {
    with(|state| {
        state.source.forget(request);
        state.decided.remove(&request);
    });
}

/// Whether the response to a request matters.
pub(super) fn awaits(request: u32) -> bool {
    with(|state| state.source.awaits(request)).unwrap_or(false)
}

/// The response to a request is there. Returns headers that it is to have.
pub(super) fn response(request: u32, answer: &Answer, now: Timestamp) -> Vec<Header> {
    with(|state| state.source.handle_response(request, answer, now)).unwrap_or_default()
}

/// A message that is to be sent, the name to answer it by, and the settings for it.
pub(super) fn unsent() -> Option<(u32, Vec<u8>, Rc<Variables>)> {
    with(|state| {
        let (token, body) = state.unsent.pop_front()?;
        Some((token, body, Rc::clone(&state.variables)))
    })
    .flatten()
}

/// A message was answered, or was not.
pub(super) fn answered(token: u32, body: Option<&[u8]>, now: Timestamp) {
    with(|state| {
        state.source.handle_answer(token, body, now);
        state.act(now);
    });
}

/// Whether the one who asks is to carry messages from now on: nobody else does.
pub(super) fn carry(now: Timestamp) -> bool {
    with(|state| {
        let free = state.carried_until <= now;
        if free {
            state.carried_until = now.after(CARRIER_GRACE);
        }
        free
    })
    .unwrap_or(false)
}

/// For how long the one who carries messages may sleep; none: there is nothing to come.
pub(super) fn nap(now: Timestamp) -> Option<Micros> {
    with(|state| {
        state.source.handle_tick(now);
        state.act(now);
        let interval = state.interval();
        let idle = now.since(state.asked_at).get() > IDLE_INTERVALS * interval.get();
        if idle && !state.source.is_calling() {
            state.carried_until = Timestamp::default();
            return None;
        }
        let nap = state.source.due().since(now);
        let nap = nap.clamp(Micros::from_millis(1), interval);
        state.carried_until = now.after(nap).after(CARRIER_GRACE);
        Some(nap)
    })
    .flatten()
}
