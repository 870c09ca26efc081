//! How the service is to run: flags over the configuration file over defaults,
//! checked whole before anything starts.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

mod settings;

pub use settings::{DurabilityName, LogFormat, Settings};

use limiter::{counter::TenantLimits, time::Micros};

use crate::store::Durability;

/// A configuration that can be run.
#[derive(Clone, Debug)]
pub struct Config {
    /// A loopback address: there are no tokens yet that would guard another.
    pub listen: SocketAddr,
    /// Where the counters are kept.
    pub data_dir: PathBuf,
    /// The rule file; without one the rules on record stay in force.
    pub rules: Option<PathBuf>,
    /// What this region is called.
    pub region: String,
    /// What an acknowledged hit survives.
    pub durability: Durability,
    /// What one client, or all together, may use.
    pub limits: Limits,
    /// What one tenant may keep in counters.
    pub tenant: TenantLimits,
    /// How long it is remembered what an idempotency key was told.
    pub idempotency_lifetime: Micros,
    /// Log bytes after which a snapshot is taken.
    pub snapshot_log_bytes: u64,
    /// How log lines look.
    pub log_format: LogFormat,
    /// What is logged.
    pub log: String,
}

/// Bounds on what is held and waited for. None of them can be switched off.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests under way in the ledger.
    pub queue_requests_max: u32,
    /// Bytes of request bodies under way.
    pub queue_bytes_max: u32,
    /// The largest request body.
    pub body_bytes_max: u32,
    /// Open connections.
    pub connections_max: u32,
    /// Who may watch counters at once.
    pub watchers_max: u32,
    /// How long a request may take, its body included.
    pub request_timeout: Duration,
}

/// Why a configuration cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there, or cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file does not say what a configuration says.
    #[error("{file}:{line}:{column}: {what}")]
    Parse {
        /// The file.
        file: String,
        /// Where in it, from 1.
        line: u64,
        /// Where in the line, from 1.
        column: u64,
        /// What is wrong.
        what: String,
    },
    /// Anyone who can reach the address could spend and see every limit.
    #[error(
        "refusing to listen on {listen}: there are no tokens to ask for, so only this machine \
         may connect; listen on 127.0.0.1:{}",
        listen.port()
    )]
    Exposed {
        /// The address that was asked for.
        listen: SocketAddr,
    },
    /// A number is outside its range.
    #[error("{field} is {value}; it must be between {least} and {most}")]
    Range {
        /// The setting.
        field: &'static str,
        /// What it is.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
}

/// Reads the settings in a configuration file.
pub fn read(file: &Path) -> Result<Settings, ConfigError> {
    let text = std::fs::read_to_string(file).map_err(|source| ConfigError::Read {
        file: file.to_owned(),
        source,
    })?;
    parse(&text, &file.display().to_string())
}

fn parse(text: &str, file: &str) -> Result<Settings, ConfigError> {
    if text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(Settings::default());
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let (line, column) = error
            .location()
            .map_or((1, 1), |at| (at.line(), at.column()));
        let what = without_place(&error.without_snippet().to_string());
        ConfigError::Parse {
            file: file.to_owned(),
            line,
            column,
            what: with_field(text, line, &what),
        }
    })
}

/// The message without the place that the parser puts after it.
fn without_place(message: &str) -> String {
    let end = message.rfind(" at line ").unwrap_or(message.len());
    message.get(..end).unwrap_or(message).to_owned()
}

/// The message with the field whose line it is, unless it names it itself.
fn with_field(text: &str, line: u64, what: &str) -> String {
    let before = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let field = text
        .lines()
        .nth(before)
        .and_then(|line| line.split_once(':'));
    match field {
        Some((field, _)) if !what.contains(field.trim()) => format!("{}: {what}", field.trim()),
        _ => what.to_owned(),
    }
}

const MIB: u32 = 1 << 20;

impl TryFrom<Settings> for Config {
    type Error = ConfigError;

    fn try_from(settings: Settings) -> Result<Self, ConfigError> {
        let limits = Limits::try_from(&settings)?;
        let tenant = tenant_limits(&settings)?;
        let idempotency_lifetime = idempotency_lifetime(&settings)?;
        let listen = settings
            .listen
            .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)));
        if !listen.ip().to_canonical().is_loopback() {
            return Err(ConfigError::Exposed { listen });
        }
        let snapshot_log_bytes = settings.snapshot_log_bytes.unwrap_or(256 * u64::from(MIB));
        in_range("snapshot_log_bytes", snapshot_log_bytes, 4096, 1 << 40)?;
        Ok(Self {
            listen,
            data_dir: settings.data_dir.unwrap_or_else(|| "weir-data".into()),
            rules: settings.rules,
            region: settings.region.unwrap_or_else(|| "local".into()),
            durability: match settings.durability {
                Some(DurabilityName::Written) => Durability::Written,
                Some(DurabilityName::Fsynced) | None => Durability::Fsynced,
            },
            tenant,
            idempotency_lifetime,
            limits,
            snapshot_log_bytes,
            log_format: settings.log_format.unwrap_or_default(),
            log: settings.log.unwrap_or_else(|| "info".into()),
        })
    }
}

impl TryFrom<&Settings> for Limits {
    type Error = ConfigError;

    fn try_from(settings: &Settings) -> Result<Self, ConfigError> {
        let bounded = |field, value: Option<u32>, default: u32, least: u32, most: u32| {
            let value = value.unwrap_or(default);
            in_range(field, value.into(), least.into(), most.into()).map(|()| value)
        };
        let body = bounded(
            "body_bytes_max",
            settings.body_bytes_max,
            4 * MIB,
            1024,
            8 * MIB,
        )?;
        let queue = settings.queue_bytes_max;
        let timeout_ms = settings.request_timeout_ms;
        Ok(Self {
            body_bytes_max: body,
            queue_bytes_max: bounded("queue_bytes_max", queue, 64 * MIB, body, 1024 * MIB)?,
            queue_requests_max: bounded(
                "queue_requests_max",
                settings.queue_requests_max,
                1024,
                1,
                1 << 20,
            )?,
            connections_max: bounded(
                "connections_max",
                settings.connections_max,
                8192,
                1,
                1 << 20,
            )?,
            watchers_max: bounded("watchers_max", settings.watchers_max, 1024, 1, 1 << 20)?,
            request_timeout: Duration::from_millis(
                bounded("request_timeout_ms", timeout_ms, 10_000, 10, 600_000)?.into(),
            ),
        })
    }
}

fn tenant_limits(settings: &Settings) -> Result<TenantLimits, ConfigError> {
    let counters_max = settings.tenant_counters_max.unwrap_or(1_000_000);
    in_range("tenant_counters_max", counters_max, 1, 1 << 32)?;
    let bytes_max = settings.tenant_counter_bytes_max.unwrap_or(1 << 30);
    in_range("tenant_counter_bytes_max", bytes_max, 1 << 10, 1 << 40)?;
    Ok(TenantLimits {
        counters_max,
        bytes_max,
    })
}

/// Two hours at least: a machine clock that jumps an hour ahead takes no key away
/// from a caller that sends again within the hour.
fn idempotency_lifetime(settings: &Settings) -> Result<Micros, ConfigError> {
    let secs = settings.idempotency_lifetime_s.unwrap_or(24 * 3_600);
    in_range("idempotency_lifetime_s", secs, 2 * 3_600, 30 * 24 * 3_600)?;
    Ok(Micros::from_secs(secs))
}

fn in_range(field: &'static str, value: u64, least: u64, most: u64) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::Range {
        field,
        value,
        least,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_setting_is_named_with_its_place() {
        let error = parse("region: eu\nlissten: 127.0.0.1:80\n", "weir.yaml").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("weir.yaml:2:1: "), "{text}");
        assert!(
            text.contains("lissten") && text.contains("listen"),
            "{text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_with_its_field_and_place() {
        let error = parse("region: eu\nlisten: here\n", "weir.yaml").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("weir.yaml:2:9: listen: "), "{text}");
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let flags = Settings {
            region: Some("flag".into()),
            ..Settings::default()
        };
        let file = parse("region: file\ndata_dir: elsewhere\n", "weir.yaml").unwrap();
        let config = Config::try_from(flags.over(file)).unwrap();
        assert_eq!(config.region, "flag");
        assert_eq!(config.data_dir, Path::new("elsewhere"));
        assert_eq!(config.limits.body_bytes_max, 4 * MIB);
    }

    #[test]
    fn an_empty_file_sets_nothing() {
        assert_eq!(parse("# all defaults\n", "weir.yaml").unwrap().region, None);
    }

    #[test]
    fn an_address_that_others_can_reach_is_refused() {
        for listen in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
            let settings = Settings {
                listen: listen.parse().ok(),
                ..Settings::default()
            };
            let error = Config::try_from(settings).unwrap_err().to_string();
            assert!(error.contains("127.0.0.1:80"), "{error}");
        }
    }

    #[test]
    fn a_number_out_of_range_is_named_with_its_range() {
        let settings = Settings {
            queue_requests_max: Some(0),
            ..Settings::default()
        };
        let error = Config::try_from(settings).unwrap_err().to_string();
        assert_eq!(
            error,
            "queue_requests_max is 0; it must be between 1 and 1048576"
        );
    }
}
