//! `weir rules compile`.

use std::{path::PathBuf, process::ExitCode};

use super::{complain, print};
use crate::{
    rules,
    serve::{Clock, SystemClock},
};

const EXAMPLES: &str = "\
Examples:
  weir rules compile rules.yaml -o rules.bin

A Worker takes its rules in this form. Where rules of two revisions meet, the greater
one is the newer: by default it is the present time in milliseconds.";

/// What `weir rules compile` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// The rule file
    file: PathBuf,
    /// Where to write them
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Their revision
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    revision: Option<u64>,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let now_ms = || SystemClock::start().now().as_micros() / 1_000;
    let revision = args.revision.unwrap_or_else(now_ms);
    let compiled = match rules::compile(&args.file, revision) {
        Ok(compiled) => compiled,
        Err(error) => return complain(&error.to_string()),
    };
    if let Err(error) = std::fs::write(&args.output, &compiled.bytes) {
        let file = args.output.display();
        return complain(&format!("cannot write {file}: {error}"));
    }
    let (rules, bytes) = (compiled.rules, compiled.bytes.len());
    print(&format!(
        "{rules} rules, revision {revision}, {bytes} bytes\n"
    ));
    ExitCode::SUCCESS
}
