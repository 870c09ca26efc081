//! Debian's PostgreSQL, as a yardstick: started on a fresh directory with its
//! defaults, which sync every commit.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Process, free_address};
use crate::wait::wait_until;

/// Whom the server runs as: it refuses to run as root.
const USER: &str = "postgres";

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct Postgres {
    address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl Postgres {
    /// Starts one with these tables; none if it is not installed.
    ///
    /// # Panics
    /// If it is installed and does not come up.
    #[must_use]
    pub fn start(connections_max: usize, tables: &str) -> Option<Self> {
        let programs = programs()?;
        let folder = TempDir::with_prefix("weir-postgres-").expect("a temporary folder");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder for its data");
        own(folder.path());
        run(as_user(&programs.join("initdb"))
            .args(["--auth", "trust", "--username", USER, "--encoding", "UTF8"])
            .arg(&data));
        let address = free_address();
        let mut command = as_user(&programs.join("postgres"));
        command
            .arg("-D")
            .arg(&data)
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &address.port().to_string(),
                "-k",
                "",
            ])
            .args(["-c", &format!("max_connections={connections_max}")]);
        let process = Process::start("postgres", command, folder.path().join("postgres.log"));
        let psql = || {
            let mut psql = Command::new(programs.join("psql"));
            psql.args(["-q", "-U", USER, "-h", "127.0.0.1", "-d", USER])
                .args(["-p", &address.port().to_string(), "-c"]);
            psql
        };
        wait_until("postgres answers", || {
            let tried = psql().arg("select 1").output();
            tried.is_ok_and(|output| output.status.success())
        });
        run(psql().arg(tables));
        Some(Self {
            address,
            _process: process,
            _folder: folder,
        })
    }

    /// Where it listens; database and user are both `postgres`, no password.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The folder of the latest version's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|programs| programs.join("initdb").exists())
        .collect();
    found.sort();
    found.pop()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(program);
    command
}

fn own(folder: &Path) {
    if is_root() {
        run(Command::new("chown").args(["-R", USER]).arg(folder));
    }
}

fn run(command: &mut Command) {
    let output: io::Result<_> = command.output();
    let output = output.expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
