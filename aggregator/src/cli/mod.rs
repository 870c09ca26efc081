//! The `weir` command: what it takes, and what its exit code means.
//!
//! 0: it did what was asked; 1: it could not, and said why on standard error
//! (or, of a simulation, on standard output); 2: it was not understood.

use std::{error::Error, io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::chain::chain;

mod logging;
mod restore;
mod rules;
mod serve;
mod simulate;
mod token;
mod verify;

const EXAMPLES: &str = "\
Examples:
  weir rules check rules.yaml
  weir serve --rules rules.yaml --data-dir weir-data
  weir verify weir-data
  weir restore backup.tar --data-dir weir-data
  weir simulate scenarios.json

Exit codes: 0 done, 1 failed (the reason is on standard error), 2 not understood.";

/// Rate limits that a whole fleet shares.
#[derive(Debug, Parser)]
#[command(name = "weir", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a region's aggregator
    Serve(Box<serve::Args>),
    /// Work with rule files
    #[command(subcommand)]
    Rules(rules::Command),
    /// Make tokens for those who may use an aggregator
    #[command(subcommand)]
    Token(token::Command),
    /// Read a data directory as a start would, and change nothing
    Verify(verify::Args),
    /// Make a data directory from a backup
    Restore(restore::Args),
    /// Run a rule and a fleet on a virtual clock, and compare with an exact limiter
    Simulate(simulate::Args),
}

/// Does what the command line asks, and says how it went.
pub fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Serve(args) => serve::run(*args),
        Command::Rules(command) => rules::run(&command),
        Command::Token(command) => token::run(command),
        Command::Verify(args) => verify::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Simulate(args) => simulate::run(&args),
    }
}

/// Prints an error with everything that led to it, on one line.
fn fail(error: &dyn Error) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "weir: {}", chain(error));
    ExitCode::FAILURE
}

/// Prints to standard output; a reader that has gone away is no error.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed_and_its_examples_parse() {
        Cli::command().debug_assert();
        let examples = EXAMPLES.lines().filter_map(|line| line.strip_prefix("  "));
        for example in examples {
            Cli::try_parse_from(example.split_whitespace()).unwrap();
        }
    }
}
