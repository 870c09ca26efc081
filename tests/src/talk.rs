//! One thread that asks over many connections, the same way in any protocol.
//!
//! Every connection has one question under way. One thread serves them all, so
//! that a comparison of servers compares no clients.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::wait::PATIENCE;

/// How questions and answers look as bytes.
pub trait Protocol {
    /// What is said before the first question; none if nothing is.
    fn greeting(&self) -> Option<Vec<u8>> {
        None
    }

    /// Adds the question about this key.
    fn ask(&self, key: u64, out: &mut Vec<u8>);

    /// Whether what has come so far is a whole answer; an error if it is not the
    /// one hoped for.
    ///
    /// # Errors
    /// What the server said instead.
    fn is_whole(&self, answer: &[u8]) -> Result<bool, String>;
}

struct Line {
    stream: TcpStream,
    asked: Instant,
    answer: Vec<u8>,
}

/// Asks over `connections` for so long, each question as soon as the last is
/// answered, about the keys that `next` gives. Returns how long each answer
/// took, in milliseconds.
///
/// # Panics
/// If the server does not answer, or not as hoped.
pub fn talk(
    protocol: &dyn Protocol,
    to: SocketAddr,
    connections: usize,
    time: Duration,
    mut next: impl FnMut() -> u64,
) -> Vec<f64> {
    let mut lines: Vec<Line> = (0..connections)
        .map(|_| Line::open(protocol, to).expect("the server takes a connection"))
        .collect();
    for line in &mut lines {
        line.ask(protocol, next());
    }
    let end = Instant::now() + time;
    let mut took = Vec::new();
    while Instant::now() < end {
        for place in readable(&lines) {
            let Some(line) = lines.get_mut(place) else {
                continue;
            };
            if line.hear(protocol) {
                took.push(line.asked.elapsed().as_secs_f64() * 1e3);
                line.ask(protocol, next());
            }
        }
    }
    took
}

impl Line {
    fn open(protocol: &dyn Protocol, to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = Self {
            stream,
            asked: Instant::now(),
            answer: Vec::new(),
        };
        if let Some(greeting) = protocol.greeting() {
            line.stream.write_all(&greeting)?;
            while !line.hear(protocol) {}
        }
        Ok(line)
    }

    fn ask(&mut self, protocol: &dyn Protocol, key: u64) {
        let mut question = Vec::with_capacity(256);
        protocol.ask(key, &mut question);
        self.answer.clear();
        self.asked = Instant::now();
        self.stream
            .write_all(&question)
            .expect("the server takes a question");
    }

    /// Reads what has come. Returns whether the answer is whole.
    fn hear(&mut self, protocol: &dyn Protocol) -> bool {
        let mut piece = [0; 4096];
        let read = self.stream.read(&mut piece).expect("the server answers");
        assert!(read > 0, "the server hung up");
        self.answer
            .extend_from_slice(piece.get(..read).unwrap_or_default());
        protocol
            .is_whole(&self.answer)
            .unwrap_or_else(|said| panic!("the server said {said}"))
    }
}

/// The lines on which something has come.
fn readable(lines: &[Line]) -> Vec<usize> {
    let mut waited: Vec<PollFd<'_>> = lines
        .iter()
        .map(|line| PollFd::new(&line.stream, PollFlags::IN))
        .collect();
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    poll(&mut waited, Some(&moment)).expect("sockets can be waited for");
    let ready = waited.iter().enumerate();
    ready
        .filter(|(_, fd)| !fd.revents().is_empty())
        .map(|(place, _)| place)
        .collect()
}
