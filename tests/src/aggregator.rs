//! `weir serve` on a data directory and a rule file, killed and restarted at will
//! on the same address.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::binaries;
use crate::http;
use crate::process::{Process, free_address};
use crate::prom::Samples;
use crate::wait::wait_until;

/// A regional aggregator. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Aggregator {
    address: SocketAddr,
    process: Option<Process>,
    folder: TempDir,
    arguments: Vec<String>,
    binary: Option<PathBuf>,
}

impl Aggregator {
    /// Starts one on a fresh data directory with these rules (YAML or JSON), and
    /// returns once it is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    #[must_use]
    pub fn start(rules: &str) -> Self {
        Self::start_with(rules, &[])
    }

    /// As [`Aggregator::start`], with more arguments for `weir serve`.
    ///
    /// # Panics
    /// If it does not become ready.
    #[must_use]
    pub fn start_with(rules: &str, arguments: &[&str]) -> Self {
        let mut aggregator = Self::prepare(arguments);
        aggregator.set_rules(rules);
        aggregator.launch();
        aggregator
    }

    /// One that is not started yet, by [`Aggregator::restart`]. It has no data, and no
    /// rule file unless it is given one.
    ///
    /// # Panics
    /// If there is no temporary folder for it.
    #[must_use]
    pub fn prepare(arguments: &[&str]) -> Self {
        Self {
            address: free_address(),
            process: None,
            folder: TempDir::with_prefix("weir-aggregator-").expect("a temporary folder"),
            arguments: arguments
                .iter()
                .map(|&argument| argument.to_owned())
                .collect(),
            binary: None,
        }
    }

    /// Runs another release from its next start on: the `weir` at this path.
    pub fn run_as(&mut self, weir: PathBuf) {
        self.binary = Some(weir);
    }

    /// Takes a copy of another's data, which must not run.
    ///
    /// # Panics
    /// If it cannot be copied, or either runs.
    pub fn copy_data_of(&self, other: &Self) {
        assert!(self.process.is_none() && other.process.is_none());
        fs::create_dir_all(self.data_dir()).expect("a folder");
        for entry in fs::read_dir(other.data_dir()).expect("data").flatten() {
            let copy = self.data_dir().join(entry.file_name());
            fs::copy(entry.path(), copy).expect("a copy");
        }
    }

    /// Where it listens, or listened.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Its rule file.
    #[must_use]
    pub fn rules_file(&self) -> PathBuf {
        self.folder.path().join("rules.yaml")
    }

    /// Replaces the rule file in one step, as an editor or a config map would.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn set_rules(&self, rules: &str) {
        replace_file(&self.rules_file(), rules);
    }

    /// SIGKILL: no flush, no goodbye.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// SIGTERM, and waits for a clean end.
    ///
    /// # Panics
    /// If it does not end, or not cleanly.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let status = process.terminate();
            assert!(status.success(), "the aggregator ended with {status}");
        }
    }

    /// Stops it in order, and starts another release, the `weir` at this path, on the
    /// same address and data.
    ///
    /// # Panics
    /// If it does not end cleanly, or the other does not become ready.
    pub fn replace_by(&mut self, weir: PathBuf) {
        self.stop();
        self.run_as(weir);
        self.restart();
    }

    /// Starts it again with other arguments, on the same address and data.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn restart_with(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        self.restart();
    }

    /// The running process's number; none while it is away.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Starts it again on the same address and data, and returns once it is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    /// The address of its next start.
    pub fn move_to(&mut self, address: SocketAddr) {
        self.address = address;
    }

    /// Its `/metrics`; none while it is away.
    #[must_use]
    pub fn metrics(&self) -> Option<Samples> {
        Samples::fetch(self.address, "/metrics")
    }

    /// What it has logged since its first start.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("weir.log")
    }

    fn launch(&mut self) {
        let weir = self.binary.clone().unwrap_or_else(binaries::weir);
        let mut command = Command::new(weir);
        command
            .arg("serve")
            .args(["--listen", &self.address.to_string()])
            .args(&self.arguments);
        if !self.arguments.iter().any(|argument| argument == "--store") {
            command.arg("--data-dir").arg(self.data_dir());
        }
        if self.rules_file().exists() {
            command.arg("--rules").arg(self.rules_file());
        }
        let mut process = Process::start("weir serve", command, self.log_file());
        wait_until("the aggregator is ready", || {
            if let Some(status) = process.ended() {
                panic!("the aggregator ended with {status}");
            }
            http::send(self.address, &http::get("/readyz", &[])).is_ok_and(|r| r.status == 200)
        });
        self.process = Some(process);
    }
}

/// Writes a file beside and moves it into place, so that a reader sees the old
/// text or the new one and never half of either.
///
/// # Panics
/// If the file cannot be written.
pub fn replace_file(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text)
        .and_then(|()| fs::rename(&beside, path))
        .unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
}
