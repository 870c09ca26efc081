//! `weir simulate`: a rule and a fleet, tried out before they are deployed.

use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use super::{print, rules::Format};

const EXAMPLES: &str = "\
Examples:
  weir simulate scenarios.json
  weir simulate scenarios.json --only flood --seed 7
  weir simulate scenarios.json --format json

A file of algorithm vectors or of gateways is replayed instead.
Exit codes: 0 all within their bounds, 1 not, 2 the file cannot be run.";

/// What `weir simulate` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The scenarios, as JSON
    file: PathBuf,
    /// Only the scenario of this name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Another seed than the scenarios name
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How to say it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let options = simulator::Options {
        only: args.only.as_deref(),
        seed: args.seed,
        format: match args.format {
            Format::Table => simulator::Format::Table,
            Format::Json => simulator::Format::Json,
        },
        progress: std::io::stderr()
            .is_terminal()
            .then_some(&progress as &simulator::Progress),
    };
    let outcome = simulator::run(&args.file, &options);
    if outcome.exit_code == 2 {
        let _ = writeln!(std::io::stderr(), "weir: {}", outcome.text.trim_end());
    } else {
        print(&outcome.text);
    }
    ExitCode::from(outcome.exit_code)
}

/// One line on the terminal, written over as the run goes on.
fn progress(name: &str, done: usize, all: usize) {
    let end = if done == all { "\r\x1b[K" } else { "" };
    let mut out = std::io::stderr();
    let _ = write!(out, "\r\x1b[K{done} of {all}: {name}{end}");
    let _ = out.flush();
}
