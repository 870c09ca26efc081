//! Clients that ask at a steady rate, whatever they are answered, and remember
//! when they were.
//!
//! The pace is the clock's and not the answers': a client that had to wait
//! catches up, so that the load stays what a test says it is.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::http::Connection;
use crate::wait::wall_us;

/// What one request came to.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// When it was sent, by the wall clock, in microseconds.
    pub sent_us: u64,
    /// When it was answered, likewise.
    pub at_us: u64,
    /// The status; none if there was no answer.
    pub status: Option<u16>,
}

/// Requests under way. Dropping it leaves the clients to end with the test.
#[derive(Debug)]
pub struct Spray {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    addresses: Vec<SocketAddr>,
    request: Vec<u8>,
    /// The one address to ask; past the end, all in turn.
    only: AtomicUsize,
    stop: AtomicBool,
    answers: Mutex<Vec<Answer>>,
}

impl Spray {
    /// Sends `request` `per_second` times a second to `addresses` in turn, from
    /// `clients` threads with a connection to each address.
    #[must_use]
    pub fn start(
        addresses: Vec<SocketAddr>,
        clients: u32,
        per_second: u32,
        request: Vec<u8>,
    ) -> Self {
        let shared = Arc::new(Shared {
            only: AtomicUsize::new(addresses.len()),
            addresses,
            request,
            stop: AtomicBool::new(false),
            answers: Mutex::default(),
        });
        let (start, step) = (Instant::now(), Duration::from_secs(1) / per_second);
        let clients = (0..clients)
            .map(|n| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.client(start + step * n, step * clients))
            })
            .collect();
        Self { shared, clients }
    }

    /// From now on all requests go to one address, by its place.
    pub fn move_to(&self, address: usize) {
        self.shared.only.store(address, Ordering::Relaxed);
    }

    /// What came of the requests that were sent since `since_us`, so far.
    #[must_use]
    pub fn answers_since(&self, since_us: u64) -> Vec<Answer> {
        let mut answers = self.shared.answers().clone();
        answers.retain(|answer| answer.sent_us >= since_us);
        answers
    }

    /// Sends no more, waits for what is under way, and tells of all.
    ///
    /// # Panics
    /// If a client's thread did.
    #[must_use]
    pub fn stop(self) -> Vec<Answer> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("a client ends");
        }
        self.shared.answers().clone()
    }
}

impl Shared {
    fn client(&self, start: Instant, step: Duration) {
        let mut connections: Vec<Option<Connection>> = Vec::new();
        connections.resize_with(self.addresses.len(), || None);
        let mut due = start;
        for turn in 0_usize.. {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            due += step;
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let only = self.only.load(Ordering::Relaxed);
            let place = if only < self.addresses.len() {
                only
            } else {
                turn % self.addresses.len()
            };
            let connection = connections.get_mut(place).expect("one for each address");
            let address = *self.addresses.get(place).expect("the address is there");
            let sent_us = wall_us();
            let status = ask(connection, address, &self.request);
            let answer = Answer {
                sent_us,
                at_us: wall_us(),
                status,
            };
            self.answers().push(answer);
        }
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Vec<Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request on a connection that is opened if need be, and given up when it
/// does not answer.
fn ask(connection: &mut Option<Connection>, address: SocketAddr, request: &[u8]) -> Option<u16> {
    let mut open = match connection.take() {
        Some(open) => open,
        None => Connection::open(address).ok()?,
    };
    let status = open.send(request).ok()?.status;
    *connection = Some(open);
    Some(status)
}

/// How many of these were admitted.
#[must_use]
pub fn admitted<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> u64 {
    let answers = answers.into_iter();
    answers.filter(|answer| answer.status == Some(200)).count() as u64
}

/// The longest that one of these took.
#[must_use]
pub fn slowest(answers: &[Answer]) -> Duration {
    let took = |answer: &Answer| answer.at_us.saturating_sub(answer.sent_us);
    Duration::from_micros(answers.iter().map(took).max().unwrap_or(0))
}
