//! Log lines: structured, on standard error, without keys or tokens.

use tracing_subscriber::{EnvFilter, filter::ParseError};

use crate::config::{Config, LogFormat};

/// Starts logging as configured, for the life of the process.
pub(super) fn start(config: &Config) -> Result<(), ParseError> {
    let filter: EnvFilter = config.log.parse()?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    match config.log_format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}
