//! `weir rules diff`.

use std::{path::PathBuf, process::ExitCode};

use super::{Format, print_or_fail};
use crate::rules;

const EXAMPLES: &str = "\
Examples:
  weir rules diff rules.yaml rules.new.yaml
  weir rules diff rules.yaml rules.new.yaml --format json

A rule that keeps its name, key, window and algorithm goes on counting.";

/// What `weir rules diff` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// The rule file as it is
    old: PathBuf,
    /// The rule file as it is to be
    new: PathBuf,
    /// How to say it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args) -> ExitCode {
    print_or_fail(rules::diff(&args.old, &args.new, args.format.into()))
}
