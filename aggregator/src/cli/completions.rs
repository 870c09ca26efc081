//! `weir completions`: what a shell needs to complete the command.

use std::{io::Write, process::ExitCode};

use clap::{Command, ValueEnum};
use clap_complete::{Shell, generate};

const EXAMPLES: &str = "\
Examples:
  weir completions bash > weir.bash
  weir completions zsh > _weir
  weir completions fish > weir.fish";

/// What `weir completions` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The shell
    shell: Name,
}

/// Shells that are kept working.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(args: &Args, mut command: Command) -> ExitCode {
    let shell = match args.shell {
        Name::Bash => Shell::Bash,
        Name::Zsh => Shell::Zsh,
        Name::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut command, "weir", &mut script);
    // A reader that has gone away is no error.
    let _ = std::io::stdout().write_all(&script);
    ExitCode::SUCCESS
}
