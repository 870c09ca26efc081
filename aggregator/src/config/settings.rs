//! What may be set, by a flag or in the configuration file: the same names in
//! both, and nothing here is checked yet.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::shared::StoreUrl;

/// Every setting, each of which may be left out.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,

    /// Who may do what: the token file, read again whenever it changes. Without one
    /// nobody is asked, and only this machine may connect
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// The certificate (PEM, with its chain) to speak TLS with; read again whenever it changes
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Who signs the certificates that clients have to show (PEM), on every path; without it
    /// they show none
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,

    /// Where the counters are kept [default: weir-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// The rule file; read again whenever it changes
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    /// A store that several aggregators of this region share, in place of a data directory:
    /// redis://[user:password@]host[:port][,host...][/db][?wait=N&wait_ms=N&lease_ms=N]
    #[arg(long, value_name = "URL", env = "WEIR_STORE", hide_env_values = true)]
    pub store: Option<StoreUrl>,

    /// Where the others who share the store reach this one [default: where it listens]
    #[arg(long, value_name = "URL")]
    pub advertise: Option<String>,

    /// Whose word on the rules counts: the rule file's, or that of clients who may change
    /// rules; then the rule file is only for a start without any [default: file if there is one]
    #[arg(long, value_enum, value_name = "FROM")]
    pub rules_from: Option<RulesFrom>,

    /// What this region is called, in logs and metrics [default: local]
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,

    /// Where the aggregator is that adds up regions: rules come from there, and those of scope
    /// global hold over all of its regions. Several, separated by commas, are tried in turn
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,

    /// The file with the token to show it; read again whenever it is refused
    #[arg(long, value_name = "FILE")]
    pub upstream_token_file: Option<PathBuf>,

    /// The authority (PEM) that signed its certificate
    #[arg(long, value_name = "FILE")]
    pub upstream_ca: Option<PathBuf>,

    /// The certificate (PEM, with its chain) to show it, if it asks for one
    #[arg(long, value_name = "FILE")]
    pub upstream_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub upstream_key: Option<PathBuf>,

    /// What an acknowledged hit survives [default: fsynced]
    #[arg(long, value_enum)]
    pub durability: Option<DurabilityName>,

    /// Requests that may be under way in the ledger before more are refused [default: 1024]
    #[arg(long, value_name = "N")]
    pub queue_requests_max: Option<u32>,

    /// Bytes of request bodies that may be under way before more are refused [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    pub queue_bytes_max: Option<u32>,

    /// The largest request body [default: 4194304]
    #[arg(long, value_name = "BYTES")]
    pub body_bytes_max: Option<u32>,

    /// Connections that may be open at once [default: 8192]
    #[arg(long, value_name = "N")]
    pub connections_max: Option<u32>,

    /// Who may watch counters at once before more are refused [default: 1024]
    #[arg(long, value_name = "N")]
    pub watchers_max: Option<u32>,

    /// Keys of rules that are counted at once, about 100 bytes each and 500 while lent: a new
    /// one beyond that takes the place of one far from its limit [default: 4000000]
    #[arg(long, value_name = "N")]
    pub keys_max: Option<u64>,

    /// Counters that one tenant may keep [default: 1000000]
    #[arg(long, value_name = "N")]
    pub tenant_counters_max: Option<u64>,

    /// Memory for one tenant's counters and idempotency keys [default: 1073741824]
    #[arg(long, value_name = "BYTES")]
    pub tenant_counter_bytes_max: Option<u64>,

    /// How long an add can be sent again under its idempotency key [default: 86400]
    #[arg(long, value_name = "SECONDS")]
    pub idempotency_lifetime_s: Option<u64>,
    /// Connections that one address may have open; of IPv6 a /64 is one [default: 1024]
    #[arg(long, value_name = "N")]
    pub connections_per_address_max: Option<u32>,

    /// How long a TLS handshake may take [default: 5000]
    #[arg(long, value_name = "MS")]
    pub handshake_timeout_ms: Option<u32>,

    /// Requests a second that one tenant may send; as many more at once after a quiet second
    /// [default: 100000]
    #[arg(long, value_name = "N")]
    pub tenant_requests_per_second_max: Option<u32>,

    /// How long a request may take before it is answered 503 [default: 10000]
    #[arg(long, value_name = "MS")]
    pub request_timeout_ms: Option<u32>,

    /// How long requests are still taken after a signal to stop, while /readyz says no, so that
    /// load balancers notice [default: 0]
    #[arg(long, value_name = "MS")]
    pub drain_delay_ms: Option<u32>,

    /// How long connections may take to finish after that [default: 10000]
    #[arg(long, value_name = "MS")]
    pub drain_timeout_ms: Option<u32>,

    /// Log bytes after which a snapshot is taken [default: 268435456]
    #[arg(long, value_name = "BYTES")]
    pub snapshot_log_bytes: Option<u64>,

    /// How log lines look [default: text]
    #[arg(long, value_enum)]
    pub log_format: Option<LogFormat>,

    /// Let keys show in log lines (of level debug): to look for a fault, not for every day
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub log_keys: Option<bool>,

    /// What is logged, as RUST_LOG has it [default: info]
    #[arg(long, value_name = "FILTER", env = "RUST_LOG")]
    pub log: Option<String>,
}

/// Whose word on the rules counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum RulesFrom {
    /// The rule file's, whenever it changes
    File,
    /// That of clients who may change rules
    Api,
}

/// What an acknowledged hit survives.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityName {
    /// The death of the process, not the loss of power
    Written,
    /// The loss of power, too
    Fsynced,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One object a line
    Json,
}

impl Settings {
    /// These settings, and those of `below` where these are silent.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            listen: self.listen.or(below.listen),
            token_file: self.token_file.or(below.token_file),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            tls_client_ca: self.tls_client_ca.or(below.tls_client_ca),
            data_dir: self.data_dir.or(below.data_dir),
            rules: self.rules.or(below.rules),
            store: self.store.or(below.store),
            advertise: self.advertise.or(below.advertise),
            rules_from: self.rules_from.or(below.rules_from),
            region: self.region.or(below.region),
            upstream: self.upstream.or(below.upstream),
            upstream_token_file: self.upstream_token_file.or(below.upstream_token_file),
            upstream_ca: self.upstream_ca.or(below.upstream_ca),
            upstream_cert: self.upstream_cert.or(below.upstream_cert),
            upstream_key: self.upstream_key.or(below.upstream_key),
            durability: self.durability.or(below.durability),
            queue_requests_max: self.queue_requests_max.or(below.queue_requests_max),
            queue_bytes_max: self.queue_bytes_max.or(below.queue_bytes_max),
            body_bytes_max: self.body_bytes_max.or(below.body_bytes_max),
            connections_max: self.connections_max.or(below.connections_max),
            watchers_max: self.watchers_max.or(below.watchers_max),
            keys_max: self.keys_max.or(below.keys_max),
            tenant_counters_max: self.tenant_counters_max.or(below.tenant_counters_max),
            tenant_counter_bytes_max: self
                .tenant_counter_bytes_max
                .or(below.tenant_counter_bytes_max),
            idempotency_lifetime_s: self.idempotency_lifetime_s.or(below.idempotency_lifetime_s),
            connections_per_address_max: self
                .connections_per_address_max
                .or(below.connections_per_address_max),
            handshake_timeout_ms: self.handshake_timeout_ms.or(below.handshake_timeout_ms),
            tenant_requests_per_second_max: self
                .tenant_requests_per_second_max
                .or(below.tenant_requests_per_second_max),
            request_timeout_ms: self.request_timeout_ms.or(below.request_timeout_ms),
            drain_delay_ms: self.drain_delay_ms.or(below.drain_delay_ms),
            drain_timeout_ms: self.drain_timeout_ms.or(below.drain_timeout_ms),
            snapshot_log_bytes: self.snapshot_log_bytes.or(below.snapshot_log_bytes),
            log_format: self.log_format.or(below.log_format),
            log_keys: self.log_keys.or(below.log_keys),
            log: self.log.or(below.log),
        }
    }
}
