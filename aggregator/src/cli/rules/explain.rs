//! `weir rules explain`.

use std::{net::IpAddr, path::PathBuf, process::ExitCode};

use super::{Format, print_or_fail};
use crate::{cli::fail, rules};

const EXAMPLES: &str = "\
Examples:
  weir rules explain rules.yaml --request 'POST /v1/x?y=z' -H 'x-api-key: 8fa3'
  weir rules explain rules.yaml --request 'GET https://api.example.com/v1' --ip 192.0.2.7
  weir rules explain rules.yaml --request 'GET /' --ip 10.0.0.1 -H 'x-forwarded-for: 192.0.2.7' --format json
  weir rules explain rules.yaml --request 'GET /' -A country=DE -A jwt.sub=alice

The address is of whoever connects; the client is found as trusted_proxies say.";

/// What `weir rules explain` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// The rule file
    file: PathBuf,
    /// The method, and the path or URL
    #[arg(long, value_name = "REQUEST")]
    request: String,
    /// A header, as often as there are any; `host` is the host
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The address of whoever connects
    #[arg(long, value_name = "ADDR")]
    ip: Option<IpAddr>,
    /// What the edge knows of it: country, asn, ja4 or jwt.CLAIM
    #[arg(short = 'A', long = "attribute", value_name = "NAME=VALUE")]
    attribute: Vec<String>,
    /// How to say it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let described = rules::Described::new(&args.request, &args.header, args.ip)
        .and_then(|request| request.with_attributes(&args.attribute));
    match described {
        Ok(request) => print_or_fail(rules::explain(&args.file, &request, args.format.into())),
        Err(error) => fail(&error),
    }
}
