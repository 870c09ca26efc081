//! Many connections at once, and what they were answered.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::http::Connection;

/// What a load was answered.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Answers by status code.
    pub by_status: BTreeMap<u16, u64>,
    /// Requests that got no answer: refused, reset, or too late.
    pub failed: u64,
}

impl Tally {
    /// How many were answered with this status.
    #[must_use]
    pub fn status(&self, status: u16) -> u64 {
        self.by_status.get(&status).copied().unwrap_or(0)
    }

    /// How many were answered at all.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.by_status.values().sum()
    }

    /// Adds another's counts to these.
    pub fn add(&mut self, other: &Self) {
        self.failed += other.failed;
        for (&status, &count) in &other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
    }
}

/// When a load ends.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// After this many requests on each connection.
    Requests(u64),
    /// At this moment.
    Deadline(Instant),
}

/// A load: `connections` to each of `addresses`, each sending one request after
/// the other.
#[derive(Debug, Clone)]
pub struct Load {
    /// Who is asked; the connections are spread over them evenly.
    pub addresses: Vec<SocketAddr>,
    /// Connections to each address.
    pub connections: usize,
    /// Left between two requests of one connection; none asks as fast as it can.
    pub pause: Duration,
    /// When to stop.
    pub until: Until,
}

impl Load {
    /// Runs it to its end. `request` makes the bytes of one request from the
    /// connection's number and the request's number on it.
    ///
    /// # Panics
    /// If a connection's thread does.
    pub fn run(&self, request: impl Fn(usize, u64) -> Vec<u8> + Sync) -> Tally {
        let request = &request;
        let mut total = Tally::default();
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .addresses
                .iter()
                .flat_map(|&address| (0..self.connections).map(move |_| address))
                .enumerate()
                .map(|(n, address)| scope.spawn(move || self.one(address, |i| request(n, i))))
                .collect();
            for thread in threads {
                total.add(&thread.join().expect("a connection's thread ends"));
            }
        });
        total
    }

    fn one(&self, address: SocketAddr, request: impl Fn(u64) -> Vec<u8>) -> Tally {
        let mut tally = Tally::default();
        let mut connection = None;
        let mut sent = 0;
        while self.goes_on(sent) {
            let open = connection
                .take()
                .map_or_else(|| Connection::open(address), Ok);
            match open.and_then(|mut c| Ok((c.send(&request(sent))?, c))) {
                Ok((response, c)) => {
                    *tally.by_status.entry(response.status).or_default() += 1;
                    connection = Some(c);
                }
                Err(_) => tally.failed += 1,
            }
            sent += 1;
            if !self.pause.is_zero() {
                thread::sleep(self.pause);
            }
        }
        tally
    }

    fn goes_on(&self, sent: u64) -> bool {
        match self.until {
            Until::Requests(requests) => sent < requests,
            Until::Deadline(deadline) => Instant::now() < deadline,
        }
    }
}
