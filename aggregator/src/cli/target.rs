//! Which service a command asks, as whom, and what becomes of its errors.

use std::{path::PathBuf, process::ExitCode};

use serde_json::Value;

use super::fail;
use crate::client::{Client, ClientError};

/// The exit code if nobody answers: `EX_UNAVAILABLE` of sysexits.
const UNREACHABLE: u8 = 69;

/// What every command that asks a service takes.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// Where the service is
    #[arg(
        long,
        env = "WEIR_URL",
        default_value = "http://127.0.0.1:8080",
        global = true
    )]
    url: String,
    /// The token to show it
    #[arg(long, env = "WEIR_TOKEN", hide_env_values = true, global = true)]
    token: Option<String>,
    /// The authority (PEM) that signed the service's certificate
    #[arg(long, env = "WEIR_CA", value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
    /// The certificate (PEM) to show it, if it asks for one
    #[arg(
        long,
        env = "WEIR_CERT",
        value_name = "FILE",
        requires = "key_file",
        global = true
    )]
    cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(
        long,
        env = "WEIR_KEY_FILE",
        value_name = "FILE",
        requires = "cert",
        global = true
    )]
    key_file: Option<PathBuf>,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people, and for $(...)
    #[default]
    Text,
    /// The service's answer as it is
    Json,
}

impl Target {
    pub(super) fn client(self) -> Result<Client, ClientError> {
        Client::new(crate::client::Target {
            url: self.url,
            token: self.token,
            ca: self.ca,
            cert: self.cert.zip(self.key_file),
        })
    }
}

/// Says why there is no answer.
pub(super) fn failed(error: &ClientError) -> ExitCode {
    let code = fail(error);
    match error {
        ClientError::Unreachable { .. } => ExitCode::from(UNREACHABLE),
        _ => code,
    }
}

/// A field of an answer as text; empty if it is not there.
pub(super) fn field(answer: &Value, name: &str) -> String {
    match answer.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}
