//! `weir rules import`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::ValueEnum;

use super::{Format, complain, print};
use crate::rules::import::{self, Entries, Imported, Options};

const EXAMPLES: &str = "\
Examples:
  weir rules import --from envoy-ratelimit config.yaml
  weir rules import --from envoy-ratelimit config.yaml --map api_key=header.x-api-key -o rules.yaml
  weir rules import --from cloudflare ruleset.json --domain api.example.com -o rules.yaml
  weir rules import --from aws-waf web-acl.json --strict

The report says of each rule what was kept, what is not quite the same, and what
was dropped. With -o it goes to standard output, else to standard error, and the
rules to standard output. A descriptor does not say where its entries come from:
--map does, in the words of a rule's key. --strict writes nothing, and exits with 1,
unless all is exact.";

/// What `weir rules import` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// What the file is
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: From,
    /// The file
    file: PathBuf,
    /// Where to write the rules
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Refuse anything less than exact
    #[arg(long)]
    strict: bool,
    /// The rules' domain, if not what the file says
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// Where an entry of a descriptor comes from, as in api_key=header.x-api-key
    #[arg(long, value_name = "ENTRY=PART")]
    map: Vec<import::Entry>,
    /// How to say the report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// Descriptors of envoyproxy/ratelimit
    EnvoyRatelimit,
    /// A rate-limiting ruleset, as Cloudflare's API has it
    Cloudflare,
    /// Rate-based statements of AWS WAF
    AwsWaf,
    /// BackendTrafficPolicy of Envoy Gateway
    EnvoyGateway,
    /// RateLimitPolicy, or Limitador's limits
    Kuadrant,
}

impl From {
    const fn source(self) -> import::Source {
        match self {
            Self::EnvoyRatelimit => import::Source::EnvoyRatelimit,
            Self::Cloudflare => import::Source::Cloudflare,
            Self::AwsWaf => import::Source::AwsWaf,
            Self::EnvoyGateway => import::Source::EnvoyGateway,
            Self::Kuadrant => import::Source::Kuadrant,
        }
    }
}

pub(super) fn run(args: &Args) -> ExitCode {
    let mut entries = Entries::default();
    args.map
        .iter()
        .cloned()
        .for_each(|entry| entries.add(entry));
    let options = Options {
        domain: args.domain.clone(),
        entries,
        strict: args.strict,
        format: args.format.into(),
    };
    match import::import(&args.file, args.from.source(), &options) {
        Ok(imported) => write(imported, args.output.as_deref(), args.format),
        Err(problems) => complain(&problems.to_string()),
    }
}

fn write(imported: Imported, output: Option<&Path>, format: Format) -> ExitCode {
    let report = imported.report.trim_end();
    let Some(rules) = imported.rules else {
        // For programs the report says so itself.
        let said = match format {
            Format::Table => format!("{report}\nnot exact: nothing was written"),
            Format::Json => report.to_owned(),
        };
        return complain(&said);
    };
    let Some(output) = output else {
        let _ = writeln!(std::io::stderr(), "{report}");
        print(&rules);
        return ExitCode::SUCCESS;
    };
    if let Err(error) = std::fs::write(output, rules) {
        return complain(&format!("{}: cannot be written: {error}", output.display()));
    }
    print(report);
    ExitCode::SUCCESS
}
