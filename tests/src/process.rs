//! One child process: its log in a file, its end with its handle.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::wait::wait_within;

/// How much of a log is printed when a test fails, in bytes.
const LOG_TAIL: usize = 16 * 1024;

/// A running process. Dropping it kills it, and prints the end of its log if the
/// test is failing.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with both its outputs going to the file `log`, which is
    /// appended to.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(name: &str, mut command: Command, log: PathBuf) -> Self {
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .expect("the log opens");
        let err = out.try_clone().expect("the log opens twice");
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self {
            name: name.to_owned(),
            child,
            log,
        }
    }

    /// What it has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, and waits for it to end by itself.
    ///
    /// # Panics
    /// If it has not ended in time.
    pub fn terminate(&mut self) -> ExitStatus {
        let status = Command::new("kill").arg(self.id().to_string()).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "{} takes no signal",
            self.name
        );
        wait_within(crate::wait::PATIENCE, || self.ended())
            .unwrap_or_else(|| panic!("{} does not end on SIGTERM", self.name))
    }

    /// Processor time that its living threads have spent, to the nanosecond.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id()));
        let spent = |task: fs::DirEntry| {
            let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
            stat.split(' ').next()?.parse::<u64>().ok()
        };
        let nanos = tasks
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter_map(spent)
            .sum();
        Duration::from_nanos(nanos)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.log();
            let start = log.ceil_char_boundary(log.len().saturating_sub(LOG_TAIL));
            eprintln!(
                "--- the end of what {} said ---\n{}",
                self.name,
                log.split_at(start).1
            );
        }
    }
}

/// A loopback address that nobody listens on, and that nobody else in this process was
/// given: tests run side by side.
///
/// # Panics
/// If the machine has none left.
#[must_use]
pub fn free_address() -> SocketAddr {
    static GIVEN: Mutex<Vec<SocketAddr>> = Mutex::new(Vec::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let address = listener.and_then(|listener| listener.local_addr());
        let address = address.expect("a free port");
        if !given.contains(&address) {
            given.push(address);
            return address;
        }
    }
}
