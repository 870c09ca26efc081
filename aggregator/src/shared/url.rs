//! `--store`: which engine, where, and what it has to promise.
//!
//! `redis://[user:password@]host[:port][,host[:port]...][/db][?wait=N&...]`. Of several
//! addresses the one that is primary is spoken to.

use core::{fmt, str::FromStr, time::Duration};

use serde::Deserialize;

const SCHEMES: [(&str, bool); 4] = [
    ("redis://", false),
    ("valkey://", false),
    ("rediss://", true),
    ("valkeys://", true),
];

const PARAMETERS: &str = "wait, wait_ms, lease_ms";

/// A shared store, as it was asked for.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct StoreUrl {
    /// Whether TLS is spoken.
    pub(super) tls: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// Hosts and ports; at least one.
    pub(super) hosts: Vec<(String, u16)>,
    pub(super) db: u16,
    /// Replicas that must hold a record before it is acknowledged.
    pub(super) wait: u32,
    /// How long that is waited for.
    pub(super) wait_for: Duration,
    /// How long an owner that is silent stays one.
    pub(crate) lease: Duration,
}

/// Why a URL names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Of an engine that is not known.
    #[error(
        "a store is a URL as redis://host:6379/0 (or valkey://, rediss://); {0:?} is another kind"
    )]
    Scheme(String),
    /// A part that cannot be read.
    #[error("{what} is {found:?}; {right}")]
    Part {
        /// Which.
        what: &'static str,
        /// What it says.
        found: String,
        /// What would be right.
        right: &'static str,
    },
    /// A parameter that there is not.
    #[error("there is no parameter {0:?}; there are {PARAMETERS}")]
    Unknown(String),
    /// A number that is too small or too large.
    #[error("{name} is {value}; it must be between {least} and {most}")]
    Range {
        /// The parameter.
        name: &'static str,
        /// What it is.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
}

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let known = SCHEMES
            .iter()
            .find_map(|(scheme, tls)| Some((text.strip_prefix(scheme)?, *tls)));
        let Some((rest, tls)) = known else {
            let scheme = text.split("://").next().unwrap_or_default();
            return Err(UrlError::Scheme(scheme.to_owned()));
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, db) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, hosts) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = credentials(who)?;
        let mut url = Self {
            tls,
            user,
            password,
            hosts: hosts.split(',').map(host).collect::<Result<_, _>>()?,
            db: match db {
                "" => 0,
                db => number("the database", db)?,
            },
            wait: 0,
            wait_for: Duration::from_millis(1_000),
            lease: Duration::from_millis(3_000),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            url.set(pair)?;
        }
        Ok(url)
    }
}

impl StoreUrl {
    fn set(&mut self, pair: &str) -> Result<(), UrlError> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "wait" => {
                let wait = ranged("wait", value, 0, 16)?;
                self.wait = u32::try_from(wait).unwrap_or(u32::MAX);
            }
            "wait_ms" => {
                self.wait_for = Duration::from_millis(ranged("wait_ms", value, 10, 60_000)?);
            }
            "lease_ms" => {
                self.lease = Duration::from_millis(ranged("lease_ms", value, 1_000, 60_000)?);
            }
            other => return Err(UrlError::Unknown(other.to_owned())),
        }
        Ok(())
    }

    /// How long an answer may take before the engine counts as away.
    pub(super) fn patience(&self) -> Duration {
        self.wait_for.max(self.lease) + Duration::from_millis(500)
    }
}

impl TryFrom<String> for StoreUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, UrlError> {
        text.parse()
    }
}

/// Without the password: it is for logs.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        write!(f, "{scheme}://")?;
        for (n, (host, port)) in self.hosts.iter().enumerate() {
            let between = if n > 0 { "," } else { "" };
            write!(f, "{between}{host}:{port}")?;
        }
        write!(f, "/{}", self.db)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn credentials(who: &str) -> Result<(Option<String>, Option<String>), UrlError> {
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    Ok((decoded(user)?, decoded(password)?))
}

/// A part in which `%40` stands for `@`; none if it is empty. It is never repeated in
/// an error: it may be a password.
fn decoded(text: &str) -> Result<Option<String>, UrlError> {
    let wrong = || UrlError::Part {
        what: "the user or the password",
        found: "…".to_owned(),
        right: "what is not a letter or a digit is written as % and two hexadecimal digits",
    };
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next(), rest.next()].map(|digit| {
            let digit = char::from(digit?).to_digit(16)?;
            u8::try_from(digit).ok()
        });
        let [Some(high), Some(low)] = digits else {
            return Err(wrong());
        };
        bytes.push(high << 4 | low);
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    Ok((!text.is_empty()).then_some(text))
}

fn host(text: &str) -> Result<(String, u16), UrlError> {
    let wrong = || UrlError::Part {
        what: "a host of the store",
        found: text.to_owned(),
        right: "it is a name or an address, and perhaps a port, as in 10.0.0.5:6379",
    };
    let bare = |text: &str| text.trim_matches(['[', ']']).to_owned();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
        _ => (text, 6379),
    };
    match bare(host) {
        host if host.is_empty() => Err(wrong()),
        host => Ok((host, port)),
    }
}

fn number<T: FromStr>(what: &'static str, text: &str) -> Result<T, UrlError> {
    text.parse().map_err(|_| UrlError::Part {
        what,
        found: text.to_owned(),
        right: "it is a whole number",
    })
}

fn ranged(name: &'static str, text: &str, least: u64, most: u64) -> Result<u64, UrlError> {
    let value = number(name, text)?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(UrlError::Range {
        name,
        value,
        least,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<StoreUrl, String> {
        text.parse().map_err(|error: UrlError| error.to_string())
    }

    #[test]
    fn a_url_says_where_the_store_is_and_what_it_has_to_promise() {
        let url = parse("redis://weir:p%40ss@a:1,b/3?wait=2&wait_ms=50&lease_ms=2000").unwrap();
        assert_eq!(url.hosts, [("a".to_owned(), 1), ("b".to_owned(), 6379)]);
        assert_eq!(url.password.as_deref(), Some("p@ss"));
        assert_eq!((url.db, url.wait, url.tls), (3, 2, false));
        assert_eq!(url.lease, Duration::from_secs(2));
        assert_eq!(parse("rediss://[::1]").unwrap().hosts[0].0, "::1");
    }

    #[test]
    fn what_is_shown_of_it_has_no_password() {
        let url = parse("redis://weir:secret@a").unwrap();
        assert_eq!(
            format!("{url} {url:?}"),
            "redis://a:6379/0 redis://a:6379/0"
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        for (text, part) in [
            ("mysql://a", "redis://host:6379/0"),
            ("redis://a?wiat=1", "no parameter \"wiat\"; there are wait"),
            (
                "redis://a?wait=17",
                "wait is 17; it must be between 0 and 16",
            ),
            ("redis://a?wait=x", "wait is \"x\"; it is a whole number"),
            ("redis://a:x", "a host of the store is \"a:x\""),
            ("redis://", "a host of the store is \"\""),
            ("redis://a/b", "the database is \"b\""),
            ("redis://u:%zz@a", "two hexadecimal digits"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
