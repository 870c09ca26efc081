//! A region far away: a TCP proxy that hands on every byte late, in order.
//!
//! Each direction of each connection has a thread that reads and one that writes
//! once the delay is over, so that what is under way does not hold back what
//! follows. It can also fall silent, as a machine that lost its power does: the
//! connections stay and nobody answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// A running proxy; it takes no more connections when dropped.
#[derive(Debug)]
pub struct Delay {
    address: SocketAddr,
    way: Arc<Way>,
}

/// What every connection needs to know.
#[derive(Debug)]
struct Way {
    target: SocketAddr,
    each_way: Duration,
    silent: AtomicBool,
    stop: AtomicBool,
}

/// Bytes on their way, and when they arrive. No bytes: the end.
type Arrival = (Instant, Vec<u8>);

impl Delay {
    /// A proxy to `target` that takes `each_way` in either direction.
    ///
    /// # Panics
    /// If there is no port for it.
    #[must_use]
    pub fn start(target: SocketAddr, each_way: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let way = Arc::new(Way {
            target,
            each_way,
            silent: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let serving = Arc::clone(&way);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if serving.stop.load(Ordering::Relaxed) {
                    return;
                }
                // A target that is gone closes the connection, late or not.
                let Ok(target) = TcpStream::connect(serving.target) else {
                    continue;
                };
                join(&client, &target, &serving);
                join(&target, &client, &serving);
            }
        });
        Self { address, way }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on every byte is lost, and no connection closes.
    pub fn fall_silent(&self) {
        self.way.silent.store(true, Ordering::Relaxed);
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.way.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// One direction of one connection.
fn join(from: &TcpStream, to: &TcpStream, way: &Arc<Way>) {
    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
        return;
    };
    let _ = to.set_nodelay(true);
    let (send, receive) = mpsc::channel();
    let (reading, writing) = (Arc::clone(way), Arc::clone(way));
    thread::spawn(move || read(from, &send, reading.each_way));
    thread::spawn(move || write(to, &receive, &writing));
}

fn read(mut from: TcpStream, arrivals: &Sender<Arrival>, each_way: Duration) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        let bytes = buffer.get(..read).unwrap_or_default().to_vec();
        if arrivals.send((Instant::now() + each_way, bytes)).is_err() || read == 0 {
            return;
        }
    }
}

fn write(mut to: TcpStream, arrivals: &Receiver<Arrival>, way: &Way) {
    for (at, bytes) in arrivals {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if way.silent.load(Ordering::Relaxed) {
            continue;
        }
        if bytes.is_empty() || to.write_all(&bytes).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Connection, get};
    use crate::upstream::Upstream;

    #[test]
    fn a_round_trip_takes_the_delay_twice_and_loses_nothing() {
        let each_way = Duration::from_millis(30);
        let upstream = Upstream::start();
        let delay = Delay::start(upstream.address(), each_way);
        let mut connection = Connection::open(delay.address()).expect("a connection");
        for _ in 0..3 {
            let sent = Instant::now();
            let answer = connection.send(&get("/", &[])).expect("an answer");
            assert_eq!(answer.text(), "upstream\n");
            assert!(sent.elapsed() >= each_way * 2);
        }
    }

    #[test]
    fn one_that_fell_silent_neither_answers_nor_hangs_up() {
        let upstream = Upstream::start();
        let delay = Delay::start(upstream.address(), Duration::ZERO);
        let mut connection = Connection::open(delay.address()).expect("a connection");
        assert!(connection.send(&get("/", &[])).is_ok());
        delay.fall_silent();
        connection
            .set_timeout(Duration::from_millis(50))
            .expect("a timeout");
        let error = connection.send(&get("/", &[])).expect_err("no answer");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
