//! The clients: connections that ask at an even pace, and tell what they were
//! answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_tests::http::{Connection, Response, get};
use weir_tests::wait::wall_us;

use crate::plan::{CLIENTS, Client, Rule};

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// Place of the POP.
    pub(crate) pop: usize,
    /// Place of the client in [`CLIENTS`].
    pub(crate) client: usize,
    /// Wall clock, microseconds.
    pub(crate) sent_us: u64,
    pub(crate) answered_us: u64,
    /// None if there was no answer.
    pub(crate) status: Option<u16>,
    /// The limit that a refusal names.
    pub(crate) limit: Option<u64>,
}

/// Requests on their way, until it is dropped.
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    answers: Receiver<Answer>,
}

impl Traffic {
    /// Every client begins to ask every POP.
    pub(crate) fn start(pops: &[SocketAddr]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, answers) = mpsc::channel();
        let mut threads = Vec::new();
        for (pop, &address) in pops.iter().enumerate() {
            for (client, profile) in CLIENTS.iter().enumerate() {
                for _ in 0..profile.connections {
                    let asker = Asker {
                        pop,
                        client,
                        address,
                        profile: *profile,
                        stop: Arc::clone(&stop),
                        answers: sender.clone(),
                    };
                    threads.push(thread::spawn(move || asker.run()));
                }
            }
        }
        Self {
            stop,
            threads,
            answers,
        }
    }

    /// What has been answered since this was last asked.
    pub(crate) fn answers(&self) -> impl Iterator<Item = Answer> {
        self.answers.try_iter()
    }

    /// Sends nothing more, and returns once everything is answered.
    pub(crate) fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One connection.
struct Asker {
    pop: usize,
    client: usize,
    address: SocketAddr,
    profile: Client,
    stop: Arc<AtomicBool>,
    answers: Sender<Answer>,
}

impl Asker {
    fn run(self) {
        let pace = Duration::from_secs(1) / self.profile.rate;
        let header = match self.profile.rule {
            Rule::Key => "x-api-key",
            Rule::Address => "x-forwarded-for",
        };
        let request = get("/", &[(header, self.profile.name)]);
        let mut connection = None;
        let mut due = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            let sent_us = wall_us();
            let answer = ask(&mut connection, self.address, &request);
            let told = self.answers.send(Answer {
                pop: self.pop,
                client: self.client,
                sent_us,
                answered_us: wall_us(),
                status: answer.as_ref().map(|answer| answer.status),
                limit: answer.as_ref().and_then(limit),
            });
            if told.is_err() {
                return;
            }
            // One that is late does not make up for it with a burst.
            due = (due + pace).max(Instant::now());
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

fn ask(kept: &mut Option<Connection>, to: SocketAddr, request: &[u8]) -> Option<Response> {
    let mut connection = kept.take().or_else(|| Connection::open(to).ok())?;
    let answer = connection.send(request).ok()?;
    *kept = Some(connection);
    Some(answer)
}

/// `q` of `RateLimit-Policy: "per-key";q=300;w=4`.
fn limit(answer: &Response) -> Option<u64> {
    let policy = answer.header("ratelimit-policy")?;
    let mut parameters = policy.split(';').skip(1);
    parameters.find_map(|parameter| parameter.strip_prefix("q=")?.parse().ok())
}
