//! A real Envoy with a filter in it, on ports of its own choosing.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::aggregator::replace_file;
use crate::binaries;
use crate::envoy_config::{self, Filter, Setup};
use crate::http::{self, Connection};
use crate::process::Process;
use crate::prom::Samples;
use crate::wait::wait_for;

/// A running Envoy. Dropping it kills it and removes its folder.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    setup: Setup,
    admin: SocketAddr,
    address: SocketAddr,
    folder: TempDir,
}

impl Envoy {
    /// Starts one with the Weir filter, flushing to `aggregator`, configured by
    /// `config` (JSON; empty for none at all).
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn with_weir(config: &str, workers: u32, aggregator: Option<SocketAddr>) -> Self {
        let mut setup = Setup::new(weir_filter(config)).workers(workers);
        setup.aggregator = aggregator;
        Self::start(setup)
    }

    /// Starts one as `setup` says, and returns once it takes requests.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn start(setup: Setup) -> Self {
        let folder = TempDir::with_prefix("weir-envoy-").expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let bootstrap = envoy_config::bootstrap(&setup, folder.path());
        let listeners = envoy_config::listeners(&setup, &setup.filter, folder.path());
        replace_file(&path("envoy.json"), &bootstrap.to_string());
        replace_file(&path("listeners.json"), &listeners.to_string());
        let mut command = Command::new(binaries::envoy());
        command
            .args(["--disable-hot-restart", "--log-level", "warning"])
            .args(["--component-log-level", "wasm:info,config:info"])
            .args(["--concurrency", &setup.workers.to_string()])
            .args(["--drain-time-s", "1", "--file-flush-interval-msec", "50"])
            .arg("--admin-address-path")
            .arg(path("admin"))
            .arg("-c")
            .arg(path("envoy.json"));
        let mut process = Process::start("envoy", command, path("envoy.log"));
        let admin = wait_for("Envoy has an admin address", || {
            alive(&mut process);
            fs::read_to_string(path("admin")).ok()?.parse().ok()
        });
        let address = wait_for("Envoy listens", || {
            alive(&mut process);
            let refused = stat(admin, "listener_manager.lds.update_rejected");
            assert_eq!(refused, 0, "Envoy refuses the listener");
            listener_address(admin)
        });
        Self {
            process,
            setup,
            admin,
            address,
            folder,
        }
    }

    /// Where it takes requests.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its admin interface.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// A new connection to it.
    ///
    /// # Panics
    /// If it takes none.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::open(self.address).expect("Envoy takes connections")
    }

    /// One GET on a connection of its own.
    ///
    /// # Panics
    /// If it is not answered.
    #[must_use]
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> http::Response {
        http::send(self.address, &http::get(path, headers)).expect("Envoy answers")
    }

    /// Its metrics, the filter's among them.
    ///
    /// # Panics
    /// If its admin interface is away.
    #[must_use]
    pub fn metrics(&self) -> Samples {
        Samples::fetch(self.admin, "/stats/prometheus").expect("Envoy's admin interface answers")
    }

    /// One of Envoy's own counters, by its dotted name.
    ///
    /// # Panics
    /// If its admin interface is away.
    #[must_use]
    pub fn stat(&self, name: &str) -> u64 {
        stat(self.admin, name)
    }

    /// Gives the plugin another configuration while it runs; true if Envoy took
    /// it, false if it kept the old one.
    ///
    /// # Panics
    /// If it does neither.
    pub fn reconfigure(&self, config: &str) -> bool {
        self.replace_filter(&weir_filter(config))
    }

    /// Puts another filter in place while it runs; true if Envoy took it.
    ///
    /// # Panics
    /// If it neither takes nor refuses it.
    pub fn replace_filter(&self, filter: &Filter) -> bool {
        let count = |outcome: &str| self.stat(&format!("listener_manager.lds.{outcome}"));
        let (taken, refused) = (count("update_success"), count("update_rejected"));
        let listeners = envoy_config::listeners(&self.setup, filter, self.folder.path());
        replace_file(
            &self.folder.path().join("listeners.json"),
            &listeners.to_string(),
        );
        wait_for("Envoy takes or refuses the listener", || {
            if count("update_rejected") > refused {
                return Some(false);
            }
            (count("update_success") > taken).then_some(true)
        })
    }

    /// What it has logged, the filter's lines among it.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The access log: one line a request answered with 400 or more, of status,
    /// the filter's decision, the response's details, path.
    #[must_use]
    pub fn access_log(&self) -> String {
        fs::read_to_string(self.file("access.log")).unwrap_or_default()
    }

    /// A file in its folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The process, to end it or to read its CPU time.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// The Weir filter as shipped, restricted to what it needs.
#[must_use]
pub fn weir_filter(config: &str) -> Filter {
    filter_of(binaries::envoy_wasm(), config)
}

/// The same of another release: the module at this path.
#[must_use]
pub fn filter_of(module: PathBuf, config: &str) -> Filter {
    Filter::Wasm {
        module,
        config: config.to_owned(),
        capabilities: shipped_capabilities(),
    }
}

/// The capabilities that `deploy/envoy/envoy.yaml` grants, which are also all that
/// the module may import and export.
///
/// # Panics
/// If the file is not there.
#[must_use]
pub fn shipped_capabilities() -> Vec<String> {
    let path = binaries::workspace().join("deploy/envoy/envoy.yaml");
    let text = fs::read_to_string(path).expect("the example configuration is there");
    text.lines()
        .skip_while(|line| line.trim() != "allowed_capabilities:")
        .filter_map(|line| line.trim().strip_suffix(": {}"))
        .map(ToOwned::to_owned)
        .collect()
}

fn alive(process: &mut Process) {
    if let Some(status) = process.ended() {
        panic!("Envoy ended with {status}");
    }
}

fn stat(admin: SocketAddr, name: &str) -> u64 {
    let path = format!("/stats?filter=^{}$", name.replace('.', "\\."));
    let response =
        http::send(admin, &http::get(&path, &[])).expect("Envoy's admin interface answers");
    let text = response.text();
    text.trim()
        .rsplit_once(": ")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

fn listener_address(admin: SocketAddr) -> Option<SocketAddr> {
    let ready = http::send(admin, &http::get("/ready", &[])).ok()?;
    if ready.status != 200 {
        return None;
    }
    let response = http::send(admin, &http::get("/listeners?format=json", &[])).ok()?;
    let listeners: Value = serde_json::from_slice(&response.body).ok()?;
    let socket = listeners.pointer("/listener_statuses/0/local_address/socket_address")?;
    let host = socket.get("address")?.as_str()?;
    let port = socket.get("port_value")?.as_u64()?;
    format!("{host}:{port}").parse().ok()
}
