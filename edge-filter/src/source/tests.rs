//! A source and a region that hear each other only when a test lets them.

use core::num::NonZeroU64;

use limiter::key::HashSeed;
use limiter::ledger::{Journal, Ledger};
use limiter::quota::{Algorithm, Quota};
use limiter::rule::{Attribute, Consistency, Rule};
use limiter::window::Window;
use limiter::wire::SyncRequest;
use prost::Message;

use super::*;
use crate::metrics::Kind;
use crate::pairs::encode;

mod responses;

/// A host whose every request is alike.
struct Fake(Timestamp);

impl Host for Fake {
    fn headers(&self) -> Vec<u8> {
        encode(&[(":path", "/")])
    }

    fn header(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }

    fn peer(&self) -> Option<Vec<u8>> {
        None
    }

    fn attribute(&self, _: &Attribute) -> Option<Vec<u8>> {
        None
    }

    fn now(&self) -> Timestamp {
        self.0
    }
}

struct NoLog;

impl Journal for NoLog {
    fn append(&mut self, _record: &[u8]) -> u64 {
        0
    }
}

/// A source and a region that hear each other only when a test lets them.
struct Pair {
    source: Source,
    ledger: Ledger,
    now: Timestamp,
    token: u32,
}

const TIMEOUT: Micros = Micros::from_millis(100);

impl Pair {
    /// One rule for all requests, in force on both sides.
    fn new(limit: u64, consistency: Consistency) -> Self {
        Self::with(limit, consistency, |_| {})
    }

    /// The same with a rule that is changed first.
    fn with(limit: u64, consistency: Consistency, change: impl Fn(&mut Rule)) -> Self {
        let window = Window::new(Micros::from_secs(3_600)).expect("a window");
        let limit = NonZeroU64::new(limit).expect("a limit");
        let mut rule = Rule::new("all", Quota::new(limit, window, Algorithm::FixedWindow));
        rule.consistency = consistency;
        rule.hold = Micros::from_millis(5);
        change(&mut rule);
        let rules = RuleSet::new("test", 1, Vec::new(), HashSeed::default(), vec![rule]);
        let now = Timestamp::from_millis(1_700_000_000_000);
        let mut ledger = Ledger::new([1, 2, 3, 4]);
        ledger.set_rules(Arc::new(rules.expect("valid rules")), now, &mut NoLog);
        let identity = Identity {
            source: 7,
            epoch: 1,
            pop: "pop".into(),
        };
        let settings = Settings {
            keys_max: 100,
            flush_interval: Micros::from_secs(1),
            hash_seeds: [5, 6, 7, 8],
        };
        let mut pair = Self {
            source: Source::new(identity, settings),
            ledger,
            now,
            token: 0,
        };
        let sent = pair.send();
        pair.answer(sent);
        assert_eq!(pair.source.rules().revision, 1);
        let told = pair.effects();
        assert!(matches!(told[..], [Effect::Inform(_)]), "{told:?}");
        pair
    }

    /// Sends what is due; its token and what it said.
    fn send(&mut self) -> Option<(u32, SyncRequest)> {
        while let Some(effect) = self.source.poll(self.now) {
            if let Effect::Send { id, body } = effect {
                self.token += 1;
                self.source
                    .handle_sent(id, Some(self.token), TIMEOUT, self.now);
                return Some((self.token, SyncRequest::decode(&*body).expect("a message")));
            }
        }
        None
    }

    fn answer(&mut self, sent: Option<(u32, SyncRequest)>) {
        let (token, request) = sent.expect("a message was due");
        let reply = self
            .ledger
            .sync(request, self.now, &mut NoLog)
            .expect("an answer");
        self.source
            .handle_answer(token, Some(&reply.encode_to_vec()), self.now);
    }

    fn request(&mut self, request: u32) -> Outcome {
        self.source.handle_request(request, &Fake(self.now))
    }

    fn pass(&mut self, time: Micros) {
        self.now = self.now.after(time);
        self.source.handle_tick(self.now);
    }

    fn effects(&mut self) -> Vec<Effect> {
        let (source, now) = (&mut self.source, self.now);
        core::iter::from_fn(|| source.poll(now)).collect()
    }
}

#[test]
fn without_rules_everything_passes() {
    let identity = Identity {
        source: 1,
        epoch: 1,
        pop: String::new(),
    };
    let settings = Settings {
        keys_max: 10,
        flush_interval: TIMEOUT,
        hash_seeds: [0; 4],
    };
    let mut source = Source::new(identity, settings);
    assert_eq!(
        source.handle_request(1, &Fake(Timestamp::default())),
        Outcome::Pass
    );
}

#[test]
fn held_requests_are_resumed_as_far_as_the_region_grants_and_the_rest_refused() {
    let mut pair = Pair::new(1, Consistency::Leased);
    for request in [1, 2] {
        assert_eq!(pair.request(request), Outcome::Hold);
    }
    let sent = pair.send();
    pair.answer(sent);
    let decided = |effects: &[Effect]| {
        let resumed = effects.contains(&Effect::Resume { request: 1 });
        let refused = |effect: &Effect| matches!(effect, Effect::Refuse { request: 2, refusal } if refusal.reason.starts_with("all:"));
        (resumed, effects.iter().any(refused))
    };
    let effects = pair.effects();
    assert_eq!(decided(&effects), (true, true), "{effects:?}");
    assert!(!pair.source.is_holding());
}

#[test]
fn a_held_request_is_answered_when_its_patience_ends() {
    let mut pair = Pair::new(1_000, Consistency::Exact);
    assert_eq!(pair.request(1), Outcome::Hold);
    assert!(pair.send().is_some());
    pair.pass(Micros::from_millis(4));
    assert!(pair.source.is_holding());
    pair.pass(Micros::from_millis(2));
    assert!(!pair.source.is_holding());
    let decided = |effect: &Effect| {
        matches!(
            effect,
            Effect::Resume { request: 1 } | Effect::Refuse { request: 1, .. }
        )
    };
    assert_eq!(
        pair.effects()
            .iter()
            .filter(|effect| decided(effect))
            .count(),
        1
    );
}

#[test]
fn a_held_request_that_has_ended_is_neither_resumed_nor_refused() {
    let mut pair = Pair::new(1_000, Consistency::Exact);
    assert_eq!(pair.request(1), Outcome::Hold);
    let sent = pair.send();
    pair.source.forget(1);
    pair.answer(sent);
    pair.pass(Micros::from_secs(1));
    let named = |effect: &Effect| matches!(effect, Effect::Resume { .. } | Effect::Refuse { .. });
    assert!(!pair.effects().iter().any(named));
}

#[test]
fn a_call_that_never_ends_is_taken_for_unanswered_and_sent_again() {
    let mut pair = Pair::new(1_000, Consistency::Leased);
    for request in 0..5 {
        if pair.request(request) == Outcome::Hold {
            let sent = pair.send();
            pair.answer(sent);
        }
    }
    pair.pass(Micros::from_secs(1));
    let lost = pair.send().expect("a flush is due");
    assert!(!lost.1.batches.is_empty());
    assert!(pair.source.is_calling());
    pair.pass(TIMEOUT.plus(CALL_GRACE));
    assert!(!pair.source.is_calling(), "given up");
    pair.pass(Micros::from_secs(1));
    let again = pair.send().expect("it is sent again");
    assert_eq!(again.1.batches, lost.1.batches);
}

#[test]
fn an_answer_nobody_waits_for_changes_nothing() {
    let mut pair = Pair::new(1, Consistency::Leased);
    pair.source.handle_answer(999, Some(b"\xff"), pair.now);
    assert!(pair.effects().is_empty());
}

#[test]
fn garbage_and_an_empty_answer_are_no_answers() {
    for body in [&b"\xff\xff"[..], b""] {
        let mut pair = Pair::new(1_000, Consistency::Exact);
        let _ = pair.request(1);
        let (token, _) = pair.send().expect("an ask");
        pair.source.handle_answer(token, Some(body), pair.now);
        assert!(!pair.source.is_calling());
        assert_eq!(pair.source.rules().revision, 1, "the rules stay");
    }
}

#[test]
fn what_the_rules_decided_is_handed_over_under_their_names() {
    struct Names(Vec<String>);
    impl Sink for Names {
        fn define(&mut self, _kind: Kind, name: &str) -> Option<u32> {
            self.0.push(name.to_owned());
            Some(1)
        }

        fn add(&mut self, _id: u32, _by: i64) {}
    }
    let mut pair = Pair::new(1_000, Consistency::Edge);
    assert_eq!(pair.request(1), Outcome::Pass);
    let mut names = Names(Vec::new());
    pair.source.report(&mut names, pair.now);
    assert!(
        names
            .0
            .contains(&"weir_requests_total;rule=all;verdict=allow".to_owned()),
        "{:?}",
        names.0
    );
}
