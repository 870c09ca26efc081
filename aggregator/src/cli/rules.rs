//! `weir rules`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Subcommand, ValueEnum};

use super::print;
use crate::rules;

const CHECK_EXAMPLES: &str = "\
Examples:
  weir rules check rules.yaml
  weir rules check rules.yaml --format json";

/// What `weir rules` takes.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Say what is wrong with a rule file; or, for each rule, what it bounds
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        /// The rule file
        file: PathBuf,
        /// How to say it
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

/// How a table is printed.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

pub(super) fn run(command: &Command) -> ExitCode {
    match command {
        Command::Check { file, format } => {
            let format = match format {
                Format::Table => rules::Format::Table,
                Format::Json => rules::Format::Json,
            };
            let (text, status) = rules::check(file, format);
            print(&text);
            ExitCode::from(status)
        }
    }
}
