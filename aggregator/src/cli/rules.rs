//! `weir rules`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Subcommand, ValueEnum};
use limiter::{bound::Fleet, time::Micros};

use super::print;
use crate::rules;

const CHECK_EXAMPLES: &str = "\
Examples:
  weir rules check rules.yaml
  weir rules check rules.yaml --format json
  weir rules check rules.yaml --sources 300 --round-trip-ms 20

AT MOST is what the whole fleet can admit of one key in one window while the region
is there; OVER says how much of that is over what one exact limiter would admit.
ASKS and HELD are what it costs where it costs most, at the limit: of a hundred
requests, about how many are asked about, and how many wait for the answer.";

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
        /// Sources that share each limit: Envoy workers, say
        #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
        sources: u32,
        /// Milliseconds from a question to the region to its answer
        #[arg(long, value_name = "MS", default_value_t = 2)]
        round_trip_ms: u64,
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
        Command::Check {
            file,
            format,
            sources,
            round_trip_ms,
        } => {
            let fleet = Fleet {
                sources: *sources,
                round_trip: Micros::from_millis(*round_trip_ms),
            };
            let format = match format {
                Format::Table => rules::Format::Table,
                Format::Json => rules::Format::Json,
            };
            let (text, status) = rules::check(file, format, fleet);
            print(&text);
            ExitCode::from(status)
        }
    }
}
