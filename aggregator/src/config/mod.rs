//! How the service is to run: flags over the configuration file over defaults,
//! checked whole before anything starts.

use core::num::NonZeroU32;
use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

mod drain;
mod settings;
mod shared;
mod tls_files;
pub(crate) mod token_file;
mod upstream;
pub(crate) mod yaml;

pub use drain::Drain;
pub use settings::{DurabilityName, LogFormat, RulesFrom, Settings};
pub use tls_files::TlsFiles;
pub use upstream::UpstreamTarget;

use limiter::{counter::TenantLimits, time::Micros};

use crate::{shared::StoreUrl, store::Durability};

/// A configuration that can be run.
#[derive(Clone, Debug)]
pub struct Config {
    /// A loopback address, unless there is a token file.
    pub listen: SocketAddr,
    /// Who may do what; without one, everyone on this machine everything.
    pub token_file: Option<PathBuf>,
    /// What TLS is spoken with; without it, plain HTTP is.
    pub tls: Option<TlsFiles>,
    /// Where the counters are kept, unless in a shared store.
    pub data_dir: PathBuf,
    /// Where they are kept if several aggregators share them.
    pub store: Option<StoreUrl>,
    /// Where other members of a shared store reach this one; none: where it listens.
    pub advertise: Option<String>,
    /// The rule file; without one the rules on record stay in force.
    pub rules: Option<PathBuf>,
    /// Whose word on the rules counts; the file's only if there is one.
    pub rules_from: RulesFrom,
    /// What this region is called.
    pub region: String,
    /// The aggregator that adds up regions, if this is one.
    pub upstream: Option<UpstreamTarget>,
    /// What an acknowledged hit survives.
    pub durability: Durability,
    /// What one client, or all together, may use.
    pub limits: Limits,
    /// How it ends.
    pub drain: Drain,
    /// What one tenant may keep in counters.
    pub tenant: TenantLimits,
    /// Keys of rules that are counted at once.
    pub keys_max: u64,
    /// How long it is remembered what an idempotency key was told.
    pub idempotency_lifetime: Micros,
    /// Log bytes after which a snapshot is taken.
    pub snapshot_log_bytes: u64,
    /// How log lines look.
    pub log_format: LogFormat,
    /// What is logged.
    pub log: String,
    /// Whether log lines may show keys.
    pub log_keys: bool,
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
    /// Open connections of one address; of IPv6 a /64 is one.
    pub connections_per_address_max: u32,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// Requests a second of one tenant, and as many at once.
    pub tenant_requests_per_second_max: NonZeroU32,
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
        "refusing to listen on {listen} without tokens: anyone who reaches it could read and \
         spend every limit; make a token with `weir token new`, put its entry into a file and \
         name that with --token-file, or listen on 127.0.0.1:{}",
        listen.port()
    )]
    Exposed {
        /// The address that was asked for.
        listen: SocketAddr,
    },
    /// One setting makes no sense without another.
    #[error("{field} needs {needs}, too")]
    Incomplete {
        /// The setting.
        field: &'static str,
        /// The one that is missing.
        needs: &'static str,
    },
    /// Two settings that exclude each other.
    #[error("{field} and {other} exclude each other: {why}")]
    Both {
        /// One.
        field: &'static str,
        /// The other.
        other: &'static str,
        /// Why.
        why: &'static str,
    },
    /// Where the aggregator above is does not say so.
    #[error(
        "upstream is {url:?}; it is where the aggregator above is, as in http://10.0.0.7:8080, or \
         several of those, separated by commas"
    )]
    Upstream {
        /// What it says.
        url: String,
    },
    /// Where others reach this one does not say so.
    #[error("advertise is {url:?}; {right}")]
    Advertise {
        /// What it says.
        url: String,
        /// What would be right.
        right: &'static str,
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
    let settings = yaml::parse(&yaml::read(file)?, file)?;
    Ok(settings.unwrap_or_default())
}

const MIB: u32 = 1 << 20;

impl TryFrom<Settings> for Config {
    type Error = ConfigError;

    fn try_from(settings: Settings) -> Result<Self, ConfigError> {
        let limits = Limits::try_from(&settings)?;
        let tenant = tenant_limits(&settings)?;
        let idempotency_lifetime = idempotency_lifetime(&settings)?;
        let rules_from = rules_from(&settings)?;
        let drain = Drain::of(&settings)?;
        let listen = settings
            .listen
            .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)));
        if !is_loopback(listen) && settings.token_file.is_none() {
            return Err(ConfigError::Exposed { listen });
        }
        let tls = TlsFiles::of(&settings)?;
        let upstream = UpstreamTarget::of(&settings)?;
        shared::check(&settings, listen)?;
        let snapshot_log_bytes = settings.snapshot_log_bytes.unwrap_or(256 * u64::from(MIB));
        in_range("snapshot_log_bytes", snapshot_log_bytes, 4096, 1 << 40)?;
        let keys_max = settings.keys_max.unwrap_or(4_000_000);
        in_range("keys_max", keys_max, 64, 1 << 32)?;
        Ok(Self {
            listen,
            token_file: settings.token_file,
            tls,
            store: settings.store,
            advertise: settings.advertise,
            data_dir: settings.data_dir.unwrap_or_else(|| "weir-data".into()),
            rules: settings.rules,
            rules_from,
            region: settings.region.unwrap_or_else(|| "local".into()),
            upstream,
            durability: match settings.durability {
                Some(DurabilityName::Written) => Durability::Written,
                Some(DurabilityName::Fsynced) | None => Durability::Fsynced,
            },
            tenant,
            keys_max,
            idempotency_lifetime,
            limits,
            drain,
            snapshot_log_bytes,
            log_format: settings.log_format.unwrap_or_default(),
            log: settings.log.unwrap_or_else(|| "info".into()),
            log_keys: settings.log_keys.unwrap_or_default(),
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
        let connections = bounded(
            "connections_max",
            settings.connections_max,
            8192,
            1,
            1 << 20,
        )?;
        let tenant_rate = bounded(
            "tenant_requests_per_second_max",
            settings.tenant_requests_per_second_max,
            100_000,
            1,
            1_000_000,
        )?;
        let queue = settings.queue_bytes_max;
        let handshake_ms = settings.handshake_timeout_ms;
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
            connections_max: connections,
            connections_per_address_max: bounded(
                "connections_per_address_max",
                settings.connections_per_address_max,
                connections.min(1024),
                1,
                connections,
            )?,
            watchers_max: bounded("watchers_max", settings.watchers_max, 1024, 1, 1 << 20)?,
            handshake_timeout: Duration::from_millis(
                bounded("handshake_timeout_ms", handshake_ms, 5_000, 10, 60_000)?.into(),
            ),
            tenant_requests_per_second_max: NonZeroU32::new(tenant_rate).unwrap_or(NonZeroU32::MAX),
            request_timeout: Duration::from_millis(
                bounded("request_timeout_ms", timeout_ms, 10_000, 10, 600_000)?.into(),
            ),
        })
    }
}

fn rules_from(settings: &Settings) -> Result<RulesFrom, ConfigError> {
    match (settings.rules_from, &settings.rules) {
        (Some(RulesFrom::File), None) => Err(ConfigError::Incomplete {
            field: "rules_from: file",
            needs: "rules",
        }),
        (Some(from), _) => Ok(from),
        (None, Some(_)) => Ok(RulesFrom::File),
        (None, None) => Ok(RulesFrom::Api),
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

/// Whether only this machine can reach it.
pub(crate) fn is_loopback(listen: SocketAddr) -> bool {
    listen.ip().to_canonical().is_loopback()
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

    fn parse(text: &str) -> Result<Settings, ConfigError> {
        let settings = yaml::parse(text.as_bytes(), Path::new("weir.yaml"))?;
        Ok(settings.unwrap_or_default())
    }

    #[test]
    fn an_unknown_setting_is_named_with_its_place() {
        let error = parse("region: eu\nlissten: 127.0.0.1:80\n").unwrap_err();
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
        let error = parse("region: eu\nlisten: here\n").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("weir.yaml:2:9: listen: "), "{text}");
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let flags = Settings {
            region: Some("flag".into()),
            ..Settings::default()
        };
        let file = parse("region: file\ndata_dir: elsewhere\n").unwrap();
        let config = Config::try_from(flags.over(file)).unwrap();
        assert_eq!(config.region, "flag");
        assert_eq!(config.data_dir, Path::new("elsewhere"));
        assert_eq!(config.limits.body_bytes_max, 4 * MIB);
    }

    #[test]
    fn an_empty_file_sets_nothing() {
        assert_eq!(parse("# all defaults\n").unwrap().region, None);
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
    fn an_address_that_others_can_reach_needs_a_token_file() {
        let settings = Settings {
            listen: "0.0.0.0:80".parse().ok(),
            token_file: Some("tokens.yaml".into()),
            ..Settings::default()
        };
        assert!(Config::try_from(settings).is_ok());
    }

    #[test]
    fn a_rule_file_is_the_truth_unless_it_is_said_that_clients_are() {
        let from = |rules: Option<&str>, rules_from| {
            let settings = Settings {
                rules: rules.map(Into::into),
                rules_from,
                ..Settings::default()
            };
            Config::try_from(settings).map(|config| config.rules_from)
        };
        let (file, api) = (RulesFrom::File, RulesFrom::Api);
        assert_eq!(from(Some("f"), None).unwrap(), file);
        assert_eq!(from(Some("f"), Some(api)).unwrap(), api);
        assert_eq!(from(None, None).unwrap(), api);
        let error = from(None, Some(file)).unwrap_err().to_string();
        assert_eq!(error, "rules_from: file needs rules, too");
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
