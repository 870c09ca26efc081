//! Several aggregators that share a store, any of which may be killed, paused, drained.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    client::{Response, get, metric, try_send, until},
    messages::RULES,
    source::Service,
    valkey::send_signal,
};

/// Groups of partitions that there are.
pub const GROUPS: u64 = 16;

/// The members of one region.
pub struct Cluster {
    dir: tempfile::TempDir,
    store: String,
    members: Vec<Mutex<Option<Member>>>,
    closing: AtomicBool,
    turn: AtomicUsize,
}

struct Member {
    child: Child,
    address: SocketAddr,
}

impl Cluster {
    /// Starts so many, on the store that this URL names.
    pub fn start(members: usize, store: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("rules.yaml"), RULES).unwrap();
        let cluster = Self {
            dir,
            store: store.to_owned(),
            members: (0..members).map(|_| Mutex::default()).collect(),
            closing: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
        };
        (0..members).for_each(|place| cluster.begin(place));
        cluster.settle();
        cluster
    }

    /// Starts a member that does not run.
    pub fn begin(&self, place: usize) {
        let member = start(self.dir.path(), place, &self.store);
        *self.members[place].lock().unwrap() = Some(member);
    }

    /// Where the members that run listen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let members = self.members.iter();
        members
            .filter_map(|member| Some(member.lock().unwrap().as_ref()?.address))
            .collect()
    }

    pub fn address(&self, place: usize) -> SocketAddr {
        self.members[place]
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .address
    }

    pub fn kill(&self, place: usize) {
        if let Some(mut member) = self.members[place].lock().unwrap().take() {
            member.child.kill().unwrap();
            member.child.wait().unwrap();
        }
    }

    pub fn signal(&self, place: usize, signal: &str) {
        let member = self.members[place].lock().unwrap();
        send_signal(member.as_ref().unwrap().child.id(), signal);
    }

    /// Ends a member as an operator would, and waits until it has.
    pub fn drain(&self, place: usize) {
        self.signal(place, "-TERM");
        let mut member = self.members[place].lock().unwrap().take().unwrap();
        assert!(member.child.wait().unwrap().success());
    }

    /// Waits until every group has an owner among the members, each of which is ready
    /// and has its part.
    pub fn settle(&self) {
        until("every group has one owner", || {
            let members = self.addresses();
            let ready = |member: &SocketAddr| get(*member, "/readyz").status == 200;
            let owned: Vec<u64> = members.iter().map(|member| owned(*member)).collect();
            let most = GROUPS.div_ceil(members.len() as u64);
            members.iter().all(ready)
                && owned.iter().sum::<u64>() == GROUPS
                && owned.iter().all(|owned| *owned <= most)
        });
    }

    /// What a metric comes to over all members.
    pub fn sum(&self, name: &str, label: &str) -> u64 {
        let members = self.addresses();
        members
            .iter()
            .map(|member| metric(*member, name, label))
            .sum()
    }

    /// Sends once, to one member after the other. An error means that it is not known
    /// what became of it.
    pub fn try_send(&self, path: &str, body: &[u8]) -> Option<Response> {
        let members = self.addresses();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let member = members.get(turn % members.len().max(1))?;
        let response = try_send(*member, "POST", path, body).ok()?;
        (response.status != 503).then_some(response)
    }

    /// Sends the same until a member answers.
    pub fn send_until_answered(&self, path: &str, body: &[u8]) -> Response {
        loop {
            if let Some(response) = self.try_send(path, body) {
                assert_eq!(response.status, 200, "{}", response.text());
                return response;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether clients are to finish.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (place, member) in self.members.iter().enumerate() {
            let Ok(mut member) = member.lock() else {
                continue;
            };
            if let Some(mut member) = member.take() {
                let _ = member.child.kill();
                let _ = member.child.wait();
            }
            if thread::panicking() {
                let log = std::fs::read_to_string(self.dir.path().join(format!("{place}.log")));
                let log = log.unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines.len().saturating_sub(40);
                eprintln!("--- member {place} ---\n{}", lines[tail..].join("\n"));
            }
        }
    }
}

pub fn owned(member: SocketAddr) -> u64 {
    metric(member, "weir_groups_owned", "")
}

fn start(dir: &Path, place: usize, store: &str) -> Member {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(dir.join(format!("{place}.log")))
        .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["serve", "--listen", "127.0.0.1:0", "--rules", "rules.yaml"])
        // Small, so that snapshots are under way, too.
        .args(["--store", store, "--snapshot-log-bytes", "100000"])
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(log.try_clone().unwrap())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let address = announced(&mut out);
    // What it says later goes nowhere, and must not stop it.
    thread::spawn(move || std::io::copy(&mut out, &mut { log }));
    Member { child, address }
}

fn announced(out: &mut impl BufRead) -> SocketAddr {
    let mut lines = out.lines().map(Result::unwrap);
    let address = lines.find_map(|line| {
        let address = line.trim().strip_prefix("listening on http://")?;
        Some(address.parse().unwrap())
    });
    address.expect("it starts")
}

impl Service for Cluster {
    fn is_closing(&self) -> bool {
        self.is_closing()
    }

    fn send_until_answered(&self, path: &str, body: &[u8]) -> Response {
        self.send_until_answered(path, body)
    }
}
