//! One isolate's source. JavaScript tells it of requests, answers and time, and
//! carries out what it wants.
//!
//! JavaScript waits for things, and requests take turns while it does. Nothing in
//! here waits: each call returns before the next begins, so that no state is ever
//! held across a wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use limiter::edge::{Answered, Identity};
use limiter::rule::Attribute;
use limiter::ruleset::RuleSet;
use limiter::time::{Micros, Timestamp};
use limiter::wire;
use prost::Message;

use super::abi::{self, Level};
use crate::claims::claim;
use crate::config::Config;
use crate::metrics::{Kind, Sink};
use crate::refusal::Refusal;
use crate::request::Host;
use crate::shards::{Heard, Part, Shards};
use crate::source::{Effect, Outcome, Source};

/// The most lines logged at one go, lest a fault be an endless loop.
const LINES_MAX: usize = 100;

/// What JavaScript is to do next.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum Todo {
    /// Nothing.
    Nothing = 0,
    /// Send the outbox to the region: numbers are the call's token and the object.
    Send = 1,
    /// Let a request go on: its number.
    Resume = 2,
    /// Answer a request with the outbox: its number.
    Refuse = 3,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum Fate {
    /// No rule has anything to say of it.
    Pass = 0,
    /// It waits until a [`Todo`] names it.
    Hold = 1,
    /// It is answered with the outbox.
    Refuse = 2,
}

struct Isolate {
    config: Config,
    source: Source,
    /// None: the region is one service.
    shards: Option<Shards>,
    timeout: Micros,
    token: u32,
    /// Which object each call under way went to.
    calls: Vec<(u32, u32)>,
    unsent: VecDeque<(u32, Part)>,
    told: Told,
}

thread_local! {
    static ISOLATE: RefCell<Option<Isolate>> = const { RefCell::new(None) };
}

/// The request at hand, as JavaScript knows it.
struct Request<'a> {
    config: &'a Config,
    now: Timestamp,
}

impl Host for Request<'_> {
    fn headers(&self) -> Vec<u8> {
        abi::headers()
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        abi::header(name)
    }

    /// With the port that it does not have here, as other hosts tell it.
    fn peer(&self) -> Option<Vec<u8>> {
        let address = abi::peer()?;
        Some(if address.contains(&b':') {
            [b"[", &*address, b"]:0"].concat()
        } else {
            [&*address, b":0"].concat()
        })
    }

    /// Cloudflare's word; of a claim, that of the header that the settings name.
    fn attribute(&self, attribute: &Attribute) -> Option<Vec<u8>> {
        match attribute {
            Attribute::Jwt(name) => {
                let header = self.config.attributes.header(attribute)?;
                claim(&self.header(header)?, name)
            }
            Attribute::Country | Attribute::Asn | Attribute::Ja4 => {
                abi::attribute(&attribute.to_string())
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

/// The response at hand: its status; JavaScript has the headers.
struct Response(u16);

impl Answered for Response {
    fn status(&self) -> u16 {
        self.0
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        abi::answer(name)
    }
}

/// Metrics on their way to JavaScript.
#[derive(Default)]
struct Told {
    names: Vec<String>,
    /// Which of them moved, and by how much.
    moves: Vec<(u32, i64)>,
}

impl Sink for Told {
    fn define(&mut self, _kind: Kind, name: &str) -> Option<u32> {
        let id = u32::try_from(self.names.len()).ok()?;
        self.names.push(name.to_owned());
        Some(id)
    }

    fn add(&mut self, id: u32, by: i64) {
        self.moves.push((id, by));
    }
}

fn with<T>(act: impl FnOnce(&mut Isolate) -> T) -> Option<T> {
    ISOLATE.with(|cell| cell.try_borrow_mut().ok()?.as_mut().map(act))
}

/// The objects that are the region.
#[derive(Debug, Clone, Copy)]
pub(super) struct Objects {
    /// How many.
    pub(super) shards: u32,
    /// Whether their rules are those of an aggregator above.
    pub(super) above: bool,
}

impl Objects {
    fn as_known_to(self, source: u64) -> Shards {
        let shards = Shards::new(self.shards, source);
        if self.above {
            shards.below_an_aggregator()
        } else {
            shards
        }
    }
}

/// Starts a source. No objects: the region is one service.
pub(super) fn start(
    seeds: [u64; 5],
    config: &[u8],
    rules: &[u8],
    objects: Option<Objects>,
    now: Timestamp,
) -> Result<(), String> {
    let config = Config::parse(config).map_err(|error| error.to_string())?;
    let [id, hash @ ..] = seeds;
    let identity = Identity {
        source: id,
        epoch: now.as_micros(),
        pop: config.pop.clone().unwrap_or_default(),
    };
    let mut source = Source::new(identity, config.settings(hash));
    source.set_explain(config.explain.clone());
    if !rules.is_empty() {
        source.set_rules(Arc::new(read(rules)?));
    }
    let isolate = Isolate {
        source,
        timeout: Micros::from_millis(u64::from(config.timeout_ms)),
        config,
        shards: objects.map(|objects| objects.as_known_to(id)),
        token: 0,
        calls: Vec::new(),
        unsent: VecDeque::new(),
        told: Told::default(),
    };
    ISOLATE.with(|cell| {
        cell.try_borrow_mut()
            .map(|mut slot| *slot = Some(isolate))
            .map_err(|_| "the isolate is busy".to_owned())
    })
}

/// Rules in the wire's form.
pub(super) fn read(rules: &[u8]) -> Result<RuleSet, String> {
    let rules = wire::RuleSet::decode(rules)
        .map_err(|_| "the rules are not in the form that `weir rules compile` writes".to_owned())?;
    RuleSet::try_from(rules).map_err(|error| format!("the rules are refused: {error}"))
}

/// The rules in force, in the wire's form; and their revision.
pub(super) fn rules() -> Option<Vec<u8>> {
    with(|isolate| wire::RuleSet::from(&**isolate.source.rules()).encode_to_vec())
}

/// A request has arrived.
pub(super) fn request(id: u32, now: Timestamp) -> Fate {
    let decide = |isolate: &mut Isolate| {
        let config = &isolate.config;
        isolate.source.handle_request(id, &Request { config, now })
    };
    match with(decide) {
        None | Some(Outcome::Pass) => Fate::Pass,
        Some(Outcome::Hold) => Fate::Hold,
        Some(Outcome::Refuse(refusal)) => {
            abi::put(json(&refusal));
            Fate::Refuse
        }
    }
}

/// Whether the response to a request that may pass has a word on what it spent, or
/// is to have headers: then [`response`] or [`forget`] is to be called.
pub(super) fn awaits(id: u32) -> bool {
    with(|isolate| isolate.source.awaits(id)).unwrap_or(false)
}

/// The response to a request is at hand. Returns headers that it is to have, as JSON:
/// `[[name, value], ...]`.
pub(super) fn response(id: u32, status: u16, now: Timestamp) -> Vec<u8> {
    let response = Response(status);
    with(|isolate| isolate.source.handle_response(id, &response, now))
        .map(|headers| serde_json::json!(headers).to_string())
        .unwrap_or_default()
        .into_bytes()
}

/// A request has ended without a response.
pub(super) fn forget(id: u32) {
    with(|isolate| isolate.source.forget(id));
}

/// A call has ended, with an answer or without. False: the object runs older
/// rules than this isolate, and the call is to be made again once it knows them.
pub(super) fn answer(token: u32, body: Option<Vec<u8>>, now: Timestamp) -> bool {
    with(|isolate| {
        let call = isolate.calls.iter().position(|(known, _)| *known == token);
        let shard = call.and_then(|at| isolate.calls.get(at)).map(|call| call.1);
        let revision = isolate.source.rules().revision;
        let heard = match (&mut isolate.shards, shard, body) {
            (Some(shards), Some(shard), Some(body)) => Some(shards.hear(shard, body, revision)),
            (Some(shards), Some(shard), None) => {
                shards.miss(shard);
                None
            }
            (_, _, body) => body.map(Heard::Reply),
        };
        let body = match heard {
            Some(Heard::Outdated) => return false,
            Some(Heard::Reply(body)) => Some(body),
            None => None,
        };
        if let Some(at) = call {
            isolate.calls.swap_remove(at);
        }
        isolate.source.handle_answer(token, body.as_deref(), now);
        true
    })
    .unwrap_or(true)
}

/// What has been counted since the last call, as JSON: `[[name, by], ...]`. Names
/// carry labels, as in `metrics`; a gauge moves by differences.
pub(super) fn report(now: Timestamp) -> Vec<u8> {
    with(|isolate| {
        isolate.told.moves.clear();
        isolate.source.report(&mut isolate.told, now);
        let Told { names, moves } = &isolate.told;
        let name = |id: &u32| names.get(usize::try_from(*id).ok()?);
        let moves = moves.iter().filter_map(|(id, by)| Some((name(id)?, by)));
        serde_json::json!(moves.collect::<Vec<_>>()).to_string()
    })
    .unwrap_or_default()
    .into_bytes()
}

/// Time has passed.
pub(super) fn tick(now: Timestamp) {
    with(|isolate| isolate.source.handle_tick(now));
}

/// When [`tick`] and [`todo`] want to be called at the latest.
pub(super) fn due() -> Timestamp {
    with(|isolate| isolate.source.due()).unwrap_or_default()
}

/// What to do next.
pub(super) fn todo(now: Timestamp) -> Todo {
    with(|isolate| isolate.todo(now)).unwrap_or(Todo::Nothing)
}

impl Isolate {
    fn todo(&mut self, now: Timestamp) -> Todo {
        for _ in 0..LINES_MAX {
            if let Some((token, part)) = self.unsent.pop_front() {
                abi::put_numbers([token, part.shard]);
                abi::put(part.body);
                return Todo::Send;
            }
            match self.source.poll(now) {
                None => return Todo::Nothing,
                Some(Effect::Send { id, body }) => self.send(id, body, now),
                Some(Effect::Resume { request }) => {
                    abi::put_numbers([request, 0]);
                    return Todo::Resume;
                }
                Some(Effect::Refuse { request, refusal }) => {
                    abi::put_numbers([request, 0]);
                    abi::put(json(&refusal));
                    return Todo::Refuse;
                }
                Some(Effect::Explain { line, .. }) => abi::log(Level::Info, &line),
                Some(Effect::Warn(line)) => abi::log(Level::Warn, &line),
                Some(Effect::Inform(line)) => abi::log(Level::Info, &line),
            }
        }
        Todo::Nothing
    }

    /// One message is one call, or one to each object that it concerns.
    fn send(&mut self, id: u64, body: Vec<u8>, now: Timestamp) {
        let parts = match &self.shards {
            Some(shards) => shards.cut(body),
            None => vec![Part { shard: 0, body }],
        };
        for part in parts {
            self.token = self.token.wrapping_add(1);
            self.calls.push((self.token, part.shard));
            self.source
                .handle_sent(id, Some(self.token), self.timeout, now);
            self.unsent.push_back((self.token, part));
        }
    }
}

/// A refusal as JavaScript makes a response of it, for either kind of client.
fn json(refusal: &Refusal) -> Vec<u8> {
    let grpc = refusal.grpc();
    serde_json::json!({
        "status": refusal.status,
        "headers": refusal.headers,
        "body": refusal.body,
        "grpc": { "status": grpc.status, "headers": grpc.headers, "message": grpc.message },
    })
    .to_string()
    .into_bytes()
}
