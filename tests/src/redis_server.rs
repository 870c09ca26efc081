//! Debian's `redis-server`, as a yardstick, and Valkey, as a store that aggregators share:
//! started on a fresh directory, spoken to in its own protocol.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::binaries;
use crate::process::{Process, free_address};
use crate::wait::{PATIENCE, wait_for};

/// A server with a log of every write. Dropping it ends it.
#[derive(Debug)]
pub struct Redis {
    address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

/// One connection to it.
#[derive(Debug)]
pub struct Client(BufReader<TcpStream>);

impl Redis {
    /// Starts one whose log is synced as `appendfsync` says; none if it is not
    /// installed.
    ///
    /// # Panics
    /// If it is installed and does not come up.
    #[must_use]
    pub fn start(appendfsync: &str) -> Option<Self> {
        let found = Command::new("redis-server").arg("--version").output();
        found.ok().filter(|output| output.status.success())?;
        Some(Self::run(Path::new("redis-server"), appendfsync))
    }

    /// Starts Valkey, as `make setup` has installed it.
    ///
    /// # Panics
    /// If it is not installed, or does not come up.
    #[must_use]
    pub fn valkey(appendfsync: &str) -> Self {
        Self::run(&binaries::valkey(), appendfsync)
    }

    fn run(server: &Path, appendfsync: &str) -> Self {
        let folder = TempDir::with_prefix("weir-redis-").expect("a temporary folder");
        let address = free_address();
        let mut command = Command::new(server);
        command
            .args(["--port", &address.port().to_string()])
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"])
            .args([
                "--appendfsync",
                appendfsync,
                "--no-appendfsync-on-rewrite",
                "no",
            ])
            .args(["--auto-aof-rewrite-percentage", "0", "--dir"])
            .arg(folder.path());
        let process = Process::start("redis", command, folder.path().join("redis.log"));
        let redis = Self {
            address,
            _process: process,
            _folder: folder,
        };
        wait_for("redis answers", || {
            let mut client = redis.connect().ok()?;
            client.call(&[&[b"PING"]]).ok()
        });
        redis
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection.
    ///
    /// # Errors
    /// As the socket says.
    pub fn connect(&self) -> io::Result<Client> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Client(BufReader::new(stream)))
    }
}

impl Client {
    /// Sends commands in one go and reads an answer for each; the last one's
    /// first line is returned.
    ///
    /// # Errors
    /// As the socket says, or if one of them is refused.
    pub fn call(&mut self, commands: &[&[&[u8]]]) -> io::Result<String> {
        let mut out = Vec::new();
        for command in commands {
            write(&mut out, command);
        }
        self.send(&out, commands.len())
    }

    /// As [`Client::call`], of commands that are bytes already.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn send(&mut self, bytes: &[u8], answers: usize) -> io::Result<String> {
        self.0.get_mut().write_all(bytes)?;
        let mut last = String::new();
        for _ in 0..answers {
            last = self.answer()?;
        }
        Ok(last)
    }

    fn answer(&mut self) -> io::Result<String> {
        let line = self.line()?;
        match line.split_at_checked(1) {
            Some(("-", error)) => Err(io::Error::other(error.to_owned())),
            Some(("$", length)) => self.text(length),
            _ => Ok(line),
        }
    }

    fn text(&mut self, length: &str) -> io::Result<String> {
        let Ok(length) = length.parse::<usize>() else {
            return Ok(String::new());
        };
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

/// Adds a command in Redis' protocol.
pub fn write(out: &mut Vec<u8>, command: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
    for part in command {
        out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
}
