//! How the time is divided, what the limits are, and who the clients are.

use std::env;
use std::time::{Duration, Instant};

/// Envoys.
pub(crate) const POPS: usize = 3;

/// Worker threads of each.
pub(crate) const WORKERS: u32 = 2;

/// Seconds it takes if nobody says otherwise.
const SECONDS_DEFAULT: u64 = 45;

/// What a machine needs to start four processes and to see whole windows.
const SECONDS_MIN: u64 = 40;

/// A rule of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Requests with an API key, by key.
    Key,
    /// Requests without one, by address.
    Address,
}

impl Rule {
    pub(crate) const ALL: [Self; 2] = [Self::Key, Self::Address];

    /// Its name in the rule file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Key => "per-key",
            Self::Address => "per-address",
        }
    }
}

/// A client: who it says it is, and how much it asks for at each POP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    /// Its API key; or its address, as a proxy before the POP reports it.
    pub(crate) name: &'static str,
    pub(crate) rule: Rule,
    /// Connections to each POP.
    pub(crate) connections: usize,
    /// Requests a second on each connection.
    pub(crate) rate: u32,
}

impl Client {
    const fn new(name: &'static str, rule: Rule, connections: usize, rate: u32) -> Self {
        Self {
            name,
            rule,
            connections,
            rate,
        }
    }

    /// Requests a second over all POPs.
    pub(crate) fn offered(&self) -> u64 {
        (self.connections * POPS) as u64 * u64::from(self.rate)
    }
}

/// The clients. The first is shown in full.
pub(crate) const CLIENTS: [Client; 5] = [
    Client::new("alice", Rule::Key, 2, 25),
    Client::new("bob", Rule::Key, 2, 20),
    Client::new("carol", Rule::Key, 1, 10),
    Client::new("198.51.100.7", Rule::Address, 1, 15),
    Client::new("198.51.100.8", Rule::Address, 1, 5),
];

/// The limits in force, in hits a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) key: u64,
    pub(crate) address: u64,
}

impl Limits {
    pub(crate) const fn of(self, rule: Rule) -> u64 {
        match rule {
            Rule::Key => self.key,
            Rule::Address => self.address,
        }
    }
}

/// The demo, in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Length of a window, in whole seconds: several flushes, since what is
    /// lent to a worker that falls silent comes back to the others only by
    /// the second.
    pub(crate) window_s: u64,
    /// Whole windows in which the first limit is watched.
    pub(crate) share_windows: u64,
    /// When it has to be over.
    pub(crate) deadline: Instant,
    /// Whether to delete the data directory, so that it fails.
    pub(crate) lose_data: bool,
}

impl Plan {
    /// As the environment says.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let seconds = match env::var("DEMO_SECONDS") {
            Ok(text) => text
                .parse()
                .ok()
                .filter(|seconds| *seconds >= SECONDS_MIN)
                .ok_or_else(|| {
                    format!("DEMO_SECONDS is `{text}`, must be a number, {SECONDS_MIN} or more")
                })?,
            Err(_) => SECONDS_DEFAULT,
        };
        let lose_data = match env::var("DEMO_BREAK").as_deref() {
            Ok("data") => true,
            Ok("") | Err(_) => false,
            Ok(other) => return Err(format!("DEMO_BREAK is `{other}`, must be `data`")),
        };
        Ok(Self {
            window_s: (seconds / 11).clamp(4, 10),
            share_windows: if seconds < 45 { 1 } else { 2 },
            deadline: Instant::now() + Duration::from_secs(seconds),
            lose_data,
        })
    }

    /// The limits that the demo starts with: less than alice, bob and the first
    /// address ask for, more than the others do.
    pub(crate) const fn first_limits(&self) -> Limits {
        Limits {
            key: 75 * self.window_s,
            address: 21 * self.window_s,
        }
    }

    /// The limits after the rule file was changed.
    pub(crate) const fn second_limits(&self) -> Limits {
        Limits {
            key: 45 * self.window_s,
            address: 21 * self.window_s,
        }
    }
}
