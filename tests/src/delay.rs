//! A region far away: a TCP proxy that hands on every byte late, in order.
//!
//! Each direction of each connection has a thread that reads and one that writes
//! once the delay is over, so that what is under way does not hold back what
//! follows. It can also fall silent, as a machine that lost its power or a network
//! that is cut does: the connections stay and nobody answers, until it heals. And it
//! can lose connections now and then.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
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
    target: Mutex<SocketAddr>,
    each_way: Duration,
    silent: AtomicBool,
    stop: AtomicBool,
    /// Of so many pieces one is lost, and its connection with it; 0: none.
    lose_one_in: AtomicU64,
    pieces: AtomicU64,
    /// Connections that were silenced: what they lost does not come again.
    silenced: Mutex<Vec<TcpStream>>,
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
            target: Mutex::new(target),
            each_way,
            silent: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            lose_one_in: AtomicU64::new(0),
            pieces: AtomicU64::new(0),
            silenced: Mutex::default(),
        });
        let serving = Arc::clone(&way);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if serving.stop.load(Ordering::Relaxed) {
                    return;
                }
                serving.take(client);
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

    /// It hands on again. Connections that lost something meanwhile end.
    pub fn heal(&self) {
        self.way.silent.store(false, Ordering::Relaxed);
        for lost in lock(&self.way.silenced).drain(..) {
            let _ = lost.shutdown(Shutdown::Both);
        }
    }

    /// From now on one in so many pieces of a stream is lost, and its connection ends
    /// with it; 0: none.
    pub fn lose_one_in(&self, pieces: u64) {
        self.way.lose_one_in.store(pieces, Ordering::Relaxed);
    }

    /// Where new connections go from now on.
    pub fn lead_to(&self, target: SocketAddr) {
        *lock(&self.way.target) = target;
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.way.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

impl Way {
    fn take(self: &Arc<Self>, client: TcpStream) {
        if self.silent.load(Ordering::Relaxed) {
            self.silence(&client);
            return;
        }
        let target = *lock(&self.target);
        // A target that is gone closes the connection, late or not.
        if let Ok(target) = TcpStream::connect(target) {
            join(&client, &target, self);
            join(&target, &client, self);
        }
    }

    /// Keeps a connection open that is of no use any more.
    fn silence(&self, connection: &TcpStream) {
        lock(&self.silenced).extend(connection.try_clone());
    }

    /// Whether this piece is the one to lose.
    fn loses(&self) -> bool {
        let one_in = self.lose_one_in.load(Ordering::Relaxed);
        let piece = self.pieces.fetch_add(1, Ordering::Relaxed);
        one_in > 0 && piece % one_in == one_in - 1
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    let mut silenced = false;
    for (at, bytes) in arrivals {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if silenced || way.silent.load(Ordering::Relaxed) {
            if !silenced {
                way.silence(&to);
                silenced = true;
            }
            continue;
        }
        if bytes.is_empty() || way.loses() || to.write_all(&bytes).is_err() {
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

    #[test]
    fn one_that_heals_hands_on_again_and_ends_what_lost_something() {
        let upstream = Upstream::start();
        let delay = Delay::start(upstream.address(), Duration::ZERO);
        let mut connection = Connection::open(delay.address()).expect("a connection");
        assert!(connection.send(&get("/", &[])).is_ok());
        delay.fall_silent();
        let waiting = thread::spawn(move || connection.send(&get("/", &[])).is_err());
        let mut meanwhile = Connection::open(delay.address()).expect("a connection");
        meanwhile
            .set_timeout(Duration::from_millis(50))
            .expect("a timeout");
        assert!(meanwhile.send(&get("/", &[])).is_err());
        delay.heal();
        assert!(
            waiting.join().expect("it ends"),
            "what was lost is not found"
        );
        let mut after = Connection::open(delay.address()).expect("a connection");
        assert!(after.send(&get("/", &[])).is_ok());
    }

    #[test]
    fn a_connection_is_lost_now_and_then_and_the_next_one_is_not() {
        let upstream = Upstream::start();
        let delay = Delay::start(upstream.address(), Duration::ZERO);
        delay.lose_one_in(3);
        let mut lost = 0;
        for _ in 0..9 {
            let mut connection = Connection::open(delay.address()).expect("a connection");
            lost += u32::from(connection.send(&get("/", &[])).is_err());
        }
        assert!((3..9).contains(&lost), "{lost} of 9");
    }
}
