//! `weir simulate`, without the rest of `weir`:
//! `cargo run --release -p simulator --example simulate -- FILE
//! [--only NAME] [--seed N] [--format table|json]`
#![allow(
    clippy::disallowed_methods,
    reason = "how long it takes is told on the terminal, and is no part of the result"
)]

use std::{env, path::PathBuf, process::ExitCode, time::Instant};

use simulator::{Format, Options};

const USAGE: &str = "simulate FILE [--only NAME] [--seed N] [--format table|json]";

fn main() -> ExitCode {
    let mut file = None;
    let mut options = Options::default();
    let args: Vec<String> = env::args().skip(1).collect();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => options.only = args.next().map(String::as_str),
            "--seed" => options.seed = args.next().and_then(|seed| seed.parse().ok()),
            "--format" if args.next().is_some_and(|format| format == "json") => {
                options.format = Format::Json;
            }
            "--format" => options.format = Format::Table,
            path => file = Some(PathBuf::from(path)),
        }
    }
    let Some(file) = file else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    let outcome = simulator::run(&file, &options);
    print!("{}", outcome.text);
    eprintln!("{:.1} s", start.elapsed().as_secs_f64());
    ExitCode::from(outcome.exit_code)
}
