//! A service that is killed again and again, and clients that do not mind.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    client::{Response, get, try_send, until},
    random::Random,
    source::Service,
};

/// What clients are told while the service comes and goes.
#[derive(Default)]
pub struct Region {
    address: Mutex<Option<SocketAddr>>,
    closing: AtomicBool,
}

impl Region {
    /// Lives and dies so many times, on the data in this directory.
    pub fn kill_again_and_again(&self, rounds: u64, dir: &Path, random: &mut Random) {
        for _ in 0..rounds {
            let (mut child, address) = start(dir);
            self.tell(address);
            // The moment is what is random: there is no condition to wait for.
            thread::sleep(Duration::from_millis(20 + random.below(250)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Lives once more, for clients to finish.
    pub fn start_and_close(&self, dir: &Path) -> (Child, SocketAddr) {
        let (child, address) = start(dir);
        self.tell(address);
        self.closing.store(true, Ordering::Release);
        (child, address)
    }

    /// Whether clients are to finish.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn tell(&self, address: SocketAddr) {
        *self.address.lock().unwrap() = Some(address);
    }

    /// Sends once. An error means that it is not known what became of it.
    pub fn try_send(&self, method: &str, path: &str, body: &[u8]) -> Option<Response> {
        let address = *self.address.lock().unwrap();
        let response = try_send(address?, method, path, body).ok()?;
        if response.status == 503 {
            return None;
        }
        Some(response)
    }

    /// Sends the same bytes until they are answered, by whichever life of the
    /// service.
    pub fn send_until_answered(&self, path: &str, body: &[u8]) -> Response {
        loop {
            if let Some(response) = self.try_send("POST", path, body) {
                assert_eq!(response.status, 200, "{}", response.text());
                return response;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

fn start(dir: &Path) -> (Child, SocketAddr) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["serve", "--listen", "127.0.0.1:0", "--rules", "rules.yaml"])
        // Small, so that snapshots and new segments are under way, too.
        .args(["--data-dir", "data", "--snapshot-log-bytes", "20000"])
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("listening on http://")
        .expect("it starts");
    let address = address.parse().unwrap();
    until("ready", || get(address, "/readyz").status == 200);
    (child, address)
}

impl Service for Region {
    fn is_closing(&self) -> bool {
        self.is_closing()
    }

    fn send_until_answered(&self, path: &str, body: &[u8]) -> Response {
        self.send_until_answered(path, body)
    }
}
