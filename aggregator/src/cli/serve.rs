//! `weir serve`.

use std::{path::PathBuf, process::ExitCode};

use super::{fail, logging, print};
use crate::{
    config::{self, Config, ConfigError, Settings},
    serve,
};

const EXAMPLES: &str = "\
Examples:
  weir serve --rules rules.yaml
  weir serve --config weir.yaml --listen 127.0.0.1:9000
  weir serve --config weir.yaml --dry-run
  weir serve --listen 0.0.0.0:8080 --token-file tokens.yaml --tls-cert cert.pem --tls-key key.pem

The configuration file is YAML; its fields are the flags below with _ for -.
Without a token file it listens on this machine only, and asks nobody who they are.
With one, every path but /healthz and /readyz needs a token with the right for it;
`weir token new` makes one.";

/// What `weir serve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The configuration file; a flag wins over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the settings and the files that they name, and exit: 0 if it would start with them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    settings: Settings,
}

pub(super) fn run(args: Args) -> ExitCode {
    let dry_run = args.dry_run;
    let config = match configure(args) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    if let Err(error) = logging::start(&config) {
        return fail(&error);
    }
    if dry_run {
        return match serve::check(config) {
            Ok(()) => {
                print("the settings and the files that they name are good");
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error),
        };
    }
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    match serve::run(config, |address| {
        print(&format!("listening on {scheme}://{address}"))
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn configure(args: Args) -> Result<Config, ConfigError> {
    let file = match &args.config {
        Some(file) => config::read(file)?,
        None => Settings::default(),
    };
    Config::try_from(args.settings.over(file))
}
