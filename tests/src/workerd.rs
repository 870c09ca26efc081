//! A real workerd with the Worker in it: several isolates, each a source, and the
//! region as Durable Objects on a disk, or elsewhere.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use limiter::key::HashSeed;
use limiter::rule::Rule;
use limiter::ruleset::RuleSet;
use limiter::wire;
use prost::Message;
use tempfile::TempDir;

use crate::binaries;
use crate::http::{self, Response};
use crate::process::{Process, free_address};
use crate::wait::wait_until;

/// What an operator shows.
pub const OPERATOR_TOKEN: &str = "operator-of-the-test";

/// What workerd is to run.
#[derive(Debug, Clone)]
pub struct Setup {
    isolates: usize,
    rules: Vec<u8>,
    object_rules: Vec<u8>,
    variables: Vec<(String, String)>,
    entry: Option<(String, String)>,
    bindings: String,
    services: String,
    extensions: String,
}

impl Setup {
    /// One isolate with these rules bundled, in front of this origin; the region is
    /// four objects.
    #[must_use]
    pub fn new(rules: &[u8], origin: SocketAddr) -> Self {
        Self {
            isolates: 1,
            rules: rules.to_vec(),
            object_rules: rules.to_vec(),
            variables: vec![
                ("WEIR_ORIGIN".to_owned(), format!("http://{origin}")),
                ("WEIR_OPERATOR_TOKEN".to_owned(), OPERATOR_TOKEN.to_owned()),
            ],
            entry: None,
            bindings: String::new(),
            services: String::new(),
            extensions: String::new(),
        }
    }

    /// Forwards to a Worker in the same process, which answers `ok`, and to no
    /// address.
    #[must_use]
    pub fn origin_inside(mut self) -> Self {
        self.variables.retain(|(name, _)| name != "WEIR_ORIGIN");
        let script = "export default { fetch: () => new Response(\"ok\") };";
        let worker = format!(
            "compatibilityDate = \"{}\", modules = [(name = \"o.js\", esModule = {script:?})]",
            compatibility_date()
        );
        self.services = format!("(name = \"origin\", worker = ({worker})),\n");
        self.binding("(name = \"WEIR_ORIGIN_WORKER\", service = \"origin\")")
    }

    /// One binding more, in Cap'n Proto's text form.
    #[must_use]
    pub fn binding(mut self, binding: &str) -> Self {
        let _ = writeln!(self.bindings, "{binding},");
        self
    }

    /// A module of the platform's own: its name, and its text.
    #[must_use]
    pub fn extension(mut self, name: &str, text: &str) -> Self {
        let module = format!("(name = {name:?}, internal = true, esModule = {text:?})");
        let _ = writeln!(self.extensions, "(modules = [{module}]),");
        self
    }

    /// That many isolates, each on an address of its own.
    #[must_use]
    pub fn isolates(mut self, isolates: usize) -> Self {
        self.isolates = isolates;
        self
    }

    /// Sets a variable, also one that is set already.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The objects have these rules bundled, as if their deployment was older.
    #[must_use]
    pub fn object_rules(mut self, rules: &[u8]) -> Self {
        self.object_rules = rules.to_vec();
        self
    }

    /// Puts a module before the Worker's own: its name, and its text.
    #[must_use]
    pub fn entry(mut self, name: &str, text: &str) -> Self {
        self.entry = Some((name.to_owned(), text.to_owned()));
        self
    }

    /// The region is a service.
    #[must_use]
    pub fn aggregator(self, address: SocketAddr) -> Self {
        self.variable("WEIR_AGGREGATOR_URL", &format!("http://{address}"))
    }
}

/// Rules as `weir rules compile` writes them.
///
/// # Panics
/// If they are not valid.
#[must_use]
pub fn compiled(revision: u64, rules: Vec<Rule>) -> Vec<u8> {
    let set = RuleSet::new("test", revision, Vec::new(), HashSeed::default(), rules);
    wire::RuleSet::from(&set.expect("valid rules")).encode_to_vec()
}

/// A running workerd. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Workerd {
    setup: Setup,
    addresses: Vec<SocketAddr>,
    modules: Vec<String>,
    process: Option<Process>,
    folder: TempDir,
}

impl Workerd {
    /// Starts one on a fresh folder, and returns once every isolate answers.
    ///
    /// # Panics
    /// If they do not.
    #[must_use]
    pub fn start(setup: Setup) -> Self {
        let folder = TempDir::with_prefix("weir-workerd-").expect("a temporary folder");
        let mut workerd = Self {
            modules: copy_modules(folder.path()),
            addresses: (0..setup.isolates).map(|_| free_address()).collect(),
            setup,
            process: None,
            folder,
        };
        fs::create_dir(workerd.folder.path().join("data")).expect("a folder for the objects");
        workerd.launch();
        workerd
    }

    /// Where the isolates listen.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where the first isolate listens.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        *self.addresses.first().expect("an isolate")
    }

    /// SIGKILL: no goodbye.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on the same addresses and data.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    /// The process.
    ///
    /// # Panics
    /// While it is killed.
    #[must_use]
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("workerd runs")
    }

    /// One GET of the first isolate, on a connection of its own.
    ///
    /// # Panics
    /// If there is no answer.
    #[must_use]
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        http::send(self.address(), &http::get(path, headers)).expect("an answer")
    }

    /// What requests with this API key are answered by the first isolate, one after
    /// the other.
    ///
    /// # Panics
    /// If one is not.
    #[must_use]
    pub fn statuses(&self, key: &str, count: usize) -> Vec<u16> {
        let one = |_| self.get("/", &[("x-api-key", key)]).status;
        (0..count).map(one).collect()
    }

    /// The sum of a number that the books of all objects tell; none while they do
    /// not answer.
    #[must_use]
    pub fn books(&self, number: &str) -> Option<u64> {
        let bearer = format!("Bearer {OPERATOR_TOKEN}");
        let request = http::get("/_weir/status", &[("authorization", &bearer)]);
        let answer = http::send(self.address(), &request).ok()?;
        let objects: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
        let objects = objects.as_array()?.iter();
        objects.map(|object| object.get(number)?.as_u64()).sum()
    }

    /// Puts other rules in force, as an operator does.
    ///
    /// # Panics
    /// If there is no answer.
    #[must_use]
    pub fn put_rules(&self, rules: &[u8]) -> Response {
        let bearer = format!("Bearer {OPERATOR_TOKEN}");
        let headers = [("authorization", bearer.as_str())];
        let request = http::request("PUT", "/_weir/rules", &headers, rules);
        http::send(self.address(), &request).expect("an answer")
    }

    fn launch(&mut self) {
        let folder = self.folder.path();
        let config = folder.join("weir.capnp");
        for (name, rules) in [
            ("rules.bin", &self.setup.rules),
            ("object-rules.bin", &self.setup.object_rules),
        ] {
            fs::write(folder.join(name), rules).expect("the rules are written");
        }
        fs::write(&config, self.config()).expect("the configuration is written");
        let mut command = Command::new(binaries::workerd());
        command.arg("serve").arg(&config);
        command.current_dir(folder);
        let log = folder.join("workerd.log");
        let mut process = Process::start("workerd", command, log);
        for address in &self.addresses {
            wait_until("workerd answers", || {
                if let Some(status) = process.ended() {
                    panic!("workerd ended with {status}");
                }
                http::send(*address, &http::get("/_weir/", &[])).is_ok()
            });
        }
        self.process = Some(process);
    }

    /// The configuration, in Cap'n Proto's text form.
    fn config(&self) -> String {
        let mut text = String::from(
            "using Workerd = import \"/workerd/workerd.capnp\";\n\
             const config :Workerd.Config = (services = [\n\
             (name = \"internet\", network = (allow = [\"local\", \"public\", \"private\"])),\n\
             (name = \"disk\", disk = (path = \"data\", writable = true)),\n",
        );
        text.push_str(&self.setup.services);
        let objects = "durableObjectNamespaces = [(className = \"Region\", uniqueKey = \"weir\", \
                       enableSql = true)], durableObjectStorage = (localDisk = \"disk\"),";
        self.service(&mut text, "region", "object-rules.bin", objects);
        for n in 0..self.addresses.len() {
            self.service(&mut text, &format!("edge-{n}"), "rules.bin", "");
        }
        text.push_str("], sockets = [\n");
        for (n, address) in self.addresses.iter().enumerate() {
            let _ = writeln!(
                text,
                "(name = \"{n}\", address = \"{address}\", service = \"edge-{n}\", \
                 http = (cfBlobHeader = \"cf-blob\")),"
            );
        }
        let _ = writeln!(text, "], extensions = [{}]);", self.setup.extensions);
        text
    }

    fn service(&self, text: &mut String, name: &str, rules: &str, more: &str) {
        let _ = writeln!(
            text,
            "(name = \"{name}\", worker = (compatibilityDate = \"{}\", modules = [",
            compatibility_date()
        );
        if let Some((name, entry)) = &self.setup.entry {
            let _ = writeln!(text, "(name = \"{name}\", esModule = {entry:?}),");
        }
        for name in &self.modules {
            let kind = if name.ends_with(".wasm") {
                "wasm"
            } else {
                "esModule"
            };
            let _ = writeln!(text, "(name = \"{name}\", {kind} = embed \"{name}\"),");
        }
        let _ = writeln!(
            text,
            "(name = \"rules.bin\", data = embed \"{rules}\")],\nbindings = ["
        );
        for (name, value) in &self.setup.variables {
            let _ = writeln!(text, "(name = \"{name}\", text = {value:?}),");
        }
        text.push_str(&self.setup.bindings);
        text.push_str(
            "(name = \"WEIR_OBJECTS\", durableObjectNamespace = (className = \"Region\", \
             serviceName = \"region\"))],\n",
        );
        let _ = writeln!(text, "{more})),");
    }
}

/// Copies the modules that were built: workerd reads nothing outside its folder.
/// Returns their names, the entry first.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn copy_modules(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(binaries::worker()).expect("the Worker is built");
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let wanted = |path: &PathBuf| {
        path.extension()
            .is_some_and(|end| end == "js" || end == "wasm")
    };
    let mut names: Vec<String> = paths
        .filter(wanted)
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            fs::copy(&path, folder.join(&name)).ok()?;
            Some(name)
        })
        .collect();
    names.sort_by_key(|name| (name != "main.js", name.clone()));
    names
}

/// As it is deployed.
fn compatibility_date() -> String {
    let manifest = fs::read_to_string(binaries::workspace().join("wrangler.toml"));
    let manifest = manifest.expect("wrangler.toml is there");
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix("compatibility_date = "));
    line.expect("it has a date").trim_matches('"').to_owned()
}
