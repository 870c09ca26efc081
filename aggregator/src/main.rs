//! The `weir` command.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    aggregator::cli::run(aggregator::cli::Cli::parse())
}
