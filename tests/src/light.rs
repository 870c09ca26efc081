//! Light sources: the real `Limiter` over HTTP in threads of the test, as many as one
//! likes, whose every acknowledged hit is summed.
//!
//! A source decides at a steady pace, whatever it is answered and however long that
//! takes. Two threads carry its messages, so that a question does not wait for a flush
//! that hangs. What it was told is on record here, so that the books can be compared
//! with it in the end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use limiter::decision::Verdict;
use limiter::edge::{Identity, Limiter, Outgoing, Settings};
use limiter::key::RuleId;
use limiter::request::Query;
use limiter::time::{Micros, Timestamp};
use limiter::wire::ack::Status;
use limiter::wire::{Ack, SyncReply, SyncRequest};
use prost::Message;

use crate::http::{Connection, request};
use crate::wait::wall_us;
use crate::warm::Keyed;

/// How long an answer is waited for, as the filter does unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(1);

/// Threads that carry messages.
const CARRIERS: usize = 2;

/// How often a source looks what is due.
const TURN: Duration = Duration::from_millis(2);

/// What a source asks for, and how fast.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// The keys of its requests, in turn.
    pub keys: Vec<String>,
    /// Requests a second; none: it only listens.
    pub per_second: u32,
}

/// A source that runs. It ends when dropped.
#[derive(Debug)]
pub struct Light {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What sources have decided and been told, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Requests decided.
    pub decided: u64,
    /// Hits admitted: one for each rule that applied.
    pub admitted: u64,
    /// Hits in batches that were acknowledged.
    pub acknowledged: u64,
    /// Hits that leaked.
    pub leaked: u64,
}

struct Shared {
    limiter: Mutex<Limiter>,
    book: Mutex<Book>,
    region: Mutex<SocketAddr>,
    traffic: Mutex<Traffic>,
    /// When it began, and which move this is: connections of an earlier one end.
    moves: AtomicU64,
    stop: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Book {
    sums: Sums,
    /// Acknowledged hits by rule.
    by_rule: BTreeMap<u64, u64>,
    /// Batches that were acknowledged: a second acknowledgement is of no more hits.
    acknowledged: BTreeMap<(u32, u64, u64), ()>,
}

/// A request that waits for the region.
struct Held {
    query: Query,
    until: Timestamp,
}

impl Light {
    /// Starts a source of a number of its own, with this traffic, before this region.
    ///
    /// # Panics
    /// If the machine has no more threads.
    #[must_use]
    pub fn start(region: SocketAddr, traffic: Traffic) -> Self {
        let number = fresh_number();
        let identity = Identity {
            source: number,
            epoch: wall_us(),
            pop: format!("light-{number:x}"),
        };
        let settings = Settings {
            keys_max: 10_000,
            flush_interval: Micros::from_secs(1),
            hash_seeds: [number, 2, 3, 4],
        };
        let shared = Arc::new(Shared {
            limiter: Mutex::new(Limiter::new(identity, settings)),
            book: Mutex::default(),
            region: Mutex::new(region),
            traffic: Mutex::new(traffic),
            moves: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let (send, receive) = mpsc::channel();
        let receive = Arc::new(Mutex::new(receive));
        let mut threads: Vec<JoinHandle<()>> = (0..CARRIERS)
            .map(|_| {
                let (shared, receive) = (Arc::clone(&shared), Arc::clone(&receive));
                thread::spawn(move || shared.carry(&receive))
            })
            .collect();
        let deciding = Arc::clone(&shared);
        threads.push(thread::spawn(move || deciding.live(&send)));
        Self { shared, threads }
    }

    /// Goes to another region from now on.
    pub fn move_to(&self, region: SocketAddr) {
        *lock(&self.shared.region) = region;
        self.shared.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks for no more. What was admitted is still reported.
    pub fn rest(&self) {
        lock(&self.shared.traffic).per_second = 0;
    }

    /// Asks again, this often a second.
    pub fn resume(&self, per_second: u32) {
        lock(&self.shared.traffic).per_second = per_second;
    }

    /// What came of it so far.
    #[must_use]
    pub fn sums(&self) -> Sums {
        lock(&self.shared.book).sums
    }

    /// Acknowledged hits by the rule's name, of the rules that it runs.
    #[must_use]
    pub fn acknowledged_by_rule(&self) -> BTreeMap<String, u64> {
        let limiter = lock(&self.shared.limiter);
        let rules = limiter.rules();
        let name = |id: &u64| {
            let place = rules.by_id(RuleId(*id))?;
            Some(rules.rule(place)?.name.clone())
        };
        let book = lock(&self.shared.book);
        let known = book.by_rule.iter();
        known
            .filter_map(|(id, hits)| Some((name(id)?, *hits)))
            .collect()
    }

    /// The revision of the rules that it runs; 0 without any.
    #[must_use]
    pub fn revision(&self) -> u64 {
        lock(&self.shared.limiter).rules().revision
    }

    /// Whether it takes its region to be away.
    #[must_use]
    pub fn is_away(&self) -> bool {
        lock(&self.shared.limiter).stats(now()).away
    }
}

impl Drop for Light {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has failed the test already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Decides and asks until it is stopped.
    fn live(&self, outgoing: &Sender<Outgoing>) {
        let mut held = Vec::new();
        let mut next = Instant::now();
        let mut turn = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let traffic = lock(&self.traffic).clone();
            match traffic.per_second {
                0 => next = Instant::now(),
                per_second => {
                    let step = Duration::from_secs(1) / per_second;
                    while next <= Instant::now() {
                        next += step;
                        turn += 1;
                        self.request(&traffic.keys, turn, &mut held);
                    }
                }
            }
            self.decide_held(&mut held);
            let mut limiter = lock(&self.limiter);
            while let Some(message) = limiter.poll_send(now()) {
                // Nobody carries any more: the source is at its end.
                let _ = outgoing.send(message);
            }
            drop(limiter);
            thread::sleep(TURN);
        }
    }

    fn request(&self, keys: &[String], turn: usize, held: &mut Vec<Held>) {
        let Some(key) = keys.get(turn % keys.len().max(1)) else {
            return;
        };
        let mut limiter = lock(&self.limiter);
        let query = limiter.rules().resolve(&Keyed(key));
        if query.hits.is_empty() {
            return;
        }
        let verdict = limiter.decide(&query, now());
        self.take(&mut limiter, verdict, query, held);
    }

    fn decide_held(&self, held: &mut Vec<Held>) {
        if held.is_empty() {
            return;
        }
        let mut limiter = lock(&self.limiter);
        for waiting in std::mem::take(held) {
            let give_up = waiting.until <= now();
            match limiter.decide_held(&waiting.query, now(), give_up) {
                Verdict::Hold { .. } => held.push(waiting),
                verdict => self.take(&mut limiter, verdict, waiting.query, held),
            }
        }
    }

    fn take(&self, limiter: &mut Limiter, verdict: Verdict, query: Query, held: &mut Vec<Held>) {
        if let Verdict::Hold { until } = verdict {
            held.push(Held { query, until });
            return;
        }
        let mut book = lock(&self.book);
        book.sums.decided += 1;
        book.sums.leaked += limiter
            .take_rule_stats()
            .iter()
            .map(|rule| rule.leaked)
            .sum::<u64>();
        if matches!(verdict, Verdict::Allow(_)) {
            book.sums.admitted += query.hits.iter().map(|hit| hit.cost).sum::<u64>();
        }
    }

    /// Carries messages until there are no more.
    fn carry(&self, messages: &Mutex<Receiver<Outgoing>>) {
        let mut connection: Option<(u64, Connection)> = None;
        loop {
            let message = lock(messages).recv();
            let Ok(message) = message else { return };
            let moves = self.moves.load(Ordering::Relaxed);
            connection = connection.take().filter(|(at, _)| *at == moves);
            let mut open = connection
                .take()
                .map(|(_, open)| open)
                .or_else(|| self.connect());
            let answer = open.as_mut().and_then(|open| ask(open, &message));
            self.answered(&message, answer.as_deref());
            connection = answer.and(open).map(|open| (moves, open));
        }
    }

    fn connect(&self) -> Option<Connection> {
        let open = Connection::open(*lock(&self.region)).ok()?;
        open.set_timeout(PATIENCE).ok()?;
        Some(open)
    }

    fn answered(&self, message: &Outgoing, answer: Option<&[u8]>) {
        let mut limiter = lock(&self.limiter);
        match answer {
            Some(reply) => {
                lock(&self.book).read(&message.body, reply);
                // What it does not take is as good as no answer, and told to it.
                let _ = limiter.handle_reply(message.id, reply, now());
            }
            None => limiter.handle_no_answer(message.id, now()),
        }
    }
}

impl Book {
    /// Takes note of what a reply acknowledges.
    fn read(&mut self, message: &[u8], reply: &[u8]) {
        let (Ok(message), Ok(reply)) = (SyncRequest::decode(message), SyncReply::decode(reply))
        else {
            return;
        };
        for batch in &message.batches {
            let is_of_it =
                |ack: &&Ack| (ack.partition, ack.sequence) == (batch.partition, batch.sequence);
            let status = reply.acks.iter().find(is_of_it).map(Ack::status);
            let is_in_the_books = matches!(status, Some(Status::Counted | Status::Duplicate));
            let name = (batch.partition, batch.epoch, batch.sequence);
            if !is_in_the_books || self.acknowledged.insert(name, ()).is_some() {
                continue;
            }
            for group in &batch.groups {
                let hits: u64 = group.hits.iter().sum();
                self.sums.acknowledged += hits;
                *self.by_rule.entry(group.rule).or_default() += hits;
            }
        }
    }
}

/// Sends a message; none if there is no good answer in time.
fn ask(open: &mut Connection, message: &Outgoing) -> Option<Vec<u8>> {
    let headers = [("content-type", "application/x-protobuf")];
    let call = request("POST", "/v1/sync", &headers, &message.body);
    let answer = open.send(&call).ok()?;
    (answer.status == 200).then_some(answer.body)
}

/// The sum over several.
#[must_use]
pub fn sums<'a>(sources: impl IntoIterator<Item = &'a Light>) -> Sums {
    sources
        .into_iter()
        .map(Light::sums)
        .fold(Sums::default(), |one, other| Sums {
            decided: one.decided + other.decided,
            admitted: one.admitted + other.admitted,
            acknowledged: one.acknowledged + other.acknowledged,
            leaked: one.leaked + other.leaked,
        })
}

fn fresh_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Spread, so that sources do not flush at the same instant.
    NEXT.fetch_add(1, Ordering::Relaxed)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ u64::from(std::process::id())
}

fn now() -> Timestamp {
    Timestamp::from_micros(wall_us())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
