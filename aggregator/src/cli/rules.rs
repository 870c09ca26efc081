//! `weir rules`.

mod compile;
mod diff;
mod explain;
mod import;
mod remote;

use std::{io::Write, path::PathBuf, process::ExitCode};

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

const SCHEMA_EXAMPLES: &str = "\
Examples:
  weir rules schema > rules.schema.json

An editor that knows YAML reads it with this line at the top of a rule file:
# yaml-language-server: $schema=rules.schema.json";

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
        /// Sources that share each limit in a region: Envoy workers, say
        #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
        sources: u32,
        /// Milliseconds from a question to the region to its answer
        #[arg(long, value_name = "MS", default_value_t = 2)]
        round_trip_ms: u64,
        /// Regions that share limits of scope global
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        regions: u32,
        /// Milliseconds from a region's question to the aggregator above to its answer
        #[arg(long, value_name = "MS", default_value_t = 150)]
        upstream_round_trip_ms: u64,
    },
    /// Write a rule file in the form that a Worker bundles
    Compile(compile::Args),
    /// Print what a rule file can say, as JSON Schema
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
    /// Make a rule file of another limiter's configuration, and say what was kept
    Import(Box<import::Args>),
    /// Say which rules a request meets, what it counts under, and why others do not apply
    Explain(explain::Args),
    /// Say what a change of rules changes, and which counts go on
    Diff(diff::Args),
    /// Print the rules that a running aggregator has in force, or had
    Get(remote::GetArgs),
    /// Put a rule file in force, or say what that would change
    Put(remote::PutArgs),
    /// Say who changed the rules, and when
    History(remote::HistoryArgs),
    /// Put an earlier revision in force again
    Rollback(remote::RollbackArgs),
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

impl From<Format> for rules::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Table => Self::Table,
            Format::Json => Self::Json,
        }
    }
}

/// Prints what was asked for, or on standard error what is wrong with a file.
fn print_or_fail(said: Result<String, rules::Problems>) -> ExitCode {
    match said {
        Ok(text) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(problems) => complain(&problems.to_string()),
    }
}

/// Says on standard error what is wrong.
fn complain(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
    ExitCode::FAILURE
}

pub(super) fn run(command: Command) -> ExitCode {
    match command {
        Command::Check {
            file,
            format,
            sources,
            round_trip_ms,
            regions,
            upstream_round_trip_ms,
        } => {
            let fleet = Fleet {
                sources,
                round_trip: Micros::from_millis(round_trip_ms),
                regions,
                above: Micros::from_millis(upstream_round_trip_ms),
            };
            let (text, status) = rules::check(&file, format.into(), fleet);
            print(&text);
            ExitCode::from(status)
        }
        Command::Schema => {
            print(rules::SCHEMA);
            ExitCode::SUCCESS
        }
        Command::Compile(args) => compile::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Get(args) => remote::get(args),
        Command::Put(args) => remote::put(args),
        Command::History(args) => remote::history(args),
        Command::Rollback(args) => remote::rollback(args),
    }
}
