//! The `weir` command: what it takes, and what its exit code means.
//!
//! 0: it did what was asked; 1: it could not, and said why on standard error
//! (or, of a simulation, on standard output); 2: it was not understood. What else
//! a command's exit code says stands in its `--help`.

use std::{error::Error, io::Write, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};

use crate::chain::chain;

mod backup;
mod check;
mod completions;
mod counter;
mod logging;
mod restore;
mod rules;
mod serve;
mod simulate;
mod target;
mod token;
mod verify;

const EXAMPLES: &str = "\
Examples:
  weir rules check rules.yaml
  weir rules import --from envoy-ratelimit config.yaml -o rules.yaml
  weir serve --rules rules.yaml --data-dir weir-data
  weir verify weir-data
  weir backup backup.tar
  weir restore backup.tar --data-dir weir-data
  weir simulate scenarios.json
  weir check per-key apikey_8fa3
  weir counter add signups

Exit codes: 0 done, 1 failed (the reason is on standard error), 2 not understood;
more where a command's --help says so.";

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
    /// Spend from a rule of a running aggregator, and say whether that was allowed
    Check(check::Args),
    /// Add to, read, reset or watch a durable counter of a running aggregator
    Counter(counter::Args),
    /// Work with rule files
    #[command(subcommand)]
    Rules(Box<rules::Command>),
    /// Make tokens for those who may use an aggregator
    #[command(subcommand)]
    Token(token::Command),
    /// Read a data directory as a start would, and change nothing
    Verify(verify::Args),
    /// Take a backup of a running aggregator
    Backup(backup::Args),
    /// Make a data directory from a backup
    Restore(restore::Args),
    /// Run a rule and a fleet on a virtual clock, and compare with an exact limiter
    Simulate(simulate::Args),
    /// Print what a shell needs to complete this command
    Completions(completions::Args),
}

/// Does what the command line asks, and says how it went.
pub fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Serve(args) => serve::run(*args),
        Command::Check(args) => check::run(args),
        Command::Counter(args) => counter::run(args),
        Command::Rules(command) => rules::run(*command),
        Command::Token(command) => token::run(command),
        Command::Verify(args) => verify::run(&args),
        Command::Backup(args) => backup::run(args),
        Command::Restore(args) => restore::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
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

    #[test]
    fn the_command_line_is_well_formed_and_every_example_in_a_help_parses() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        command.build();
        assert!(parse_examples(&command) > 15);
    }

    /// Parses the examples of a command and of those below it; says how many.
    fn parse_examples(command: &clap::Command) -> usize {
        let help = command.get_after_help().map(ToString::to_string);
        let mut count = 0;
        // A line that ends with a backslash goes on in the next.
        for example in help.unwrap_or_default().replace("\\\n", " ").lines() {
            let Some(example) = example.strip_prefix("  weir ") else {
                continue;
            };
            let words = words(example.split(" > ").next().unwrap());
            let all = std::iter::once("weir".to_owned()).chain(words);
            Cli::try_parse_from(all).unwrap();
            count += 1;
        }
        count + command.get_subcommands().map(parse_examples).sum::<usize>()
    }

    /// The words of a line, as a shell takes it apart.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for (place, piece) in line.split('\'').enumerate() {
            if place % 2 == 1 {
                words.last_mut().unwrap().push_str(piece);
                continue;
            }
            for (place, word) in piece.split(' ').enumerate() {
                if place > 0 {
                    words.push(String::new());
                }
                words.last_mut().unwrap().push_str(word);
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }
}
