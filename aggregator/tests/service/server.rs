//! A service in this process, with a data directory and a rule file of its own.

#![allow(
    clippy::disallowed_methods,
    reason = "the machine's clock is read here to be set ahead or back"
)]

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aggregator::{
    config::{Config, Settings},
    serve::{Running, ServeError, SystemClock},
};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::{
    common::{
        client::{get, metric, until},
        messages::RULES,
    },
    disk::{Gate, TestDisk},
};

/// A directory with a rule file, and what is set beside the defaults; and how far
/// off the machine's clock is.
pub struct Place {
    dir: TempDir,
    clock_ahead_s: Arc<AtomicI64>,
    pub settings: Settings,
}

pub struct TestServer {
    pub address: SocketAddr,
    pub gate: Arc<Gate>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<Result<(), ServeError>>>,
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Self {
            settings: Settings {
                listen: Some("127.0.0.1:0".parse().unwrap()),
                data_dir: Some(dir.path().join("data")),
                rules: Some(dir.path().join("rules.yaml")),
                ..Settings::default()
            },
            clock_ahead_s: Arc::default(),
            dir,
        };
        place.write_rules(RULES);
        place
    }

    /// A file beside the rules.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn write_rules(&self, text: &str) {
        self.write("rules.yaml", text);
    }

    /// Replaces a file at once, as an editor that renames.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let (new, file) = (self.file("new"), self.file(name));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &file).unwrap();
        file
    }

    /// Sets the machine's clock so many seconds ahead of the true time.
    pub fn set_clock_ahead_s(&self, seconds: i64) {
        self.clock_ahead_s.store(seconds, Ordering::Relaxed);
    }

    fn clock(&self) -> SystemClock {
        let ahead = Arc::clone(&self.clock_ahead_s);
        SystemClock::of(move || {
            let truly = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let ahead = ahead.load(Ordering::Relaxed);
            Duration::from_secs(truly.as_secs().saturating_add_signed(ahead))
                + Duration::from_micros(truly.subsec_micros().into())
        })
    }

    /// Starts a service here, and waits until it is ready and its rules are on
    /// record: what a test does to the disk hits what the test does next.
    pub fn start(&self) -> TestServer {
        let server = self.launch();
        let address = server.address;
        until("ready", || get(address, "/readyz").status == 200);
        until("the rules are on record", || {
            metric(address, "weir_log_position", "") > 0
                || metric(address, "weir_commit_seconds_count", "") > 0
        });
        server
    }

    /// The same without waiting: for one that does not answer everyone.
    pub fn launch(&self) -> TestServer {
        let config = Config::try_from(self.settings.clone()).unwrap();
        let gate = Arc::new(Gate::default());
        let disk = Arc::new(TestDisk::new(&gate));
        let clock = Box::new(self.clock());
        let (stop, stopped) = oneshot::channel();
        let (told, tell) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let running = Running::start(config, disk, clock).await?;
                told.send(running.address()).unwrap();
                running.until(async { drop(stopped.await) }).await
            })
        });
        TestServer {
            address: tell.recv().expect("it starts"),
            gate,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl TestServer {
    /// Tells it to stop, and does not wait.
    pub fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits for its end.
    pub fn end(mut self) -> Result<(), ServeError> {
        self.thread.take().unwrap().join().unwrap()
    }

    pub fn stop(mut self) {
        self.begin_stop();
        self.end().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.gate.open();
        self.begin_stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
