//! One import, from bytes to a rule file and its report.

use std::path::Path;

use super::{
    Entries, aws_waf, cloudflare, envoy_gateway, envoy_ratelimit, kuadrant, names, output,
    report::{Draft, Report, RuleImport},
};
use crate::rules::{
    at::At,
    check::Format,
    diagnostic::{Notes, Problems},
    file, tree,
};

/// How deep a source's values may nest: AWS WAF's statements need the most.
const DEPTH_MAX: usize = 64;

/// Whose configuration is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// envoyproxy/ratelimit.
    EnvoyRatelimit,
    /// Cloudflare's rate-limiting rules.
    Cloudflare,
    /// AWS WAF's rate-based statements.
    AwsWaf,
    /// Envoy Gateway's `BackendTrafficPolicy`.
    EnvoyGateway,
    /// Kuadrant's `RateLimitPolicy`, and Limitador's limits.
    Kuadrant,
}

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The rules' domain, if not the source's.
    pub domain: Option<String>,
    /// What descriptors' entries are.
    pub entries: Entries,
    /// Whether anything less than exact is refused.
    pub strict: bool,
    /// How the report is said.
    pub format: Format,
}

/// What an import gave.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The rule file; none if the import was strict and not exact.
    pub rules: Option<String>,
    /// The report, as text.
    pub report: String,
}

/// What a source says, before names are settled.
pub(super) struct Read {
    pub(super) domain: String,
    pub(super) drafts: Vec<Draft>,
    pub(super) assumed: Vec<String>,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::EnvoyRatelimit,
        Self::Cloudflare,
        Self::AwsWaf,
        Self::EnvoyGateway,
        Self::Kuadrant,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EnvoyRatelimit => "envoy-ratelimit",
            Self::Cloudflare => "cloudflare",
            Self::AwsWaf => "aws-waf",
            Self::EnvoyGateway => "envoy-gateway",
            Self::Kuadrant => "kuadrant",
        }
    }

    fn read(self, documents: &[At<'_>], options: &Options) -> Option<Read> {
        match self {
            Self::EnvoyRatelimit => envoy_ratelimit::read(documents, options),
            Self::Cloudflare => cloudflare::read(documents),
            Self::AwsWaf => aws_waf::read(documents),
            Self::EnvoyGateway => envoy_gateway::read(documents),
            Self::Kuadrant => kuadrant::read(documents, options),
        }
    }
}

/// Imports the file at `path`, or says what is wrong with it.
pub fn import(path: &Path, source: Source, options: &Options) -> Result<Imported, Problems> {
    let name = path.display().to_string();
    parse(&name, &file::bytes(path)?, source, options)
}

/// Imports a text, which messages call `name`.
pub fn parse(
    name: &str,
    bytes: &[u8],
    source: Source,
    options: &Options,
) -> Result<Imported, Problems> {
    file::not_too_long(name, bytes)?;
    let notes = Notes::default();
    let read = file::text(bytes, &notes).and_then(|text| {
        let roots = tree::read_all(text, &notes, DEPTH_MAX)?;
        let documents: Vec<_> = roots.iter().map(|root| At::root(root, &notes)).collect();
        source.read(&documents, options)
    });
    match read {
        Some(read) if notes.is_empty() => finish(name, source, read, options),
        _ => Err(notes.into_problems(name)),
    }
}

fn finish(name: &str, source: Source, read: Read, options: &Options) -> Result<Imported, Problems> {
    let mut drafts = read.drafts;
    names::settle(&mut drafts);
    let domain = options.domain.as_deref().unwrap_or(&read.domain);
    let rules = output::write(&names::plain(domain), &drafts)
        .map_err(|why| file::whole(name, format!("the rules made of it make no file: {why}")))?;
    let rules_said: Vec<_> = drafts.iter().map(RuleImport::of).collect();
    let exact = rules_said
        .iter()
        .all(|rule| rule.fidelity == super::Fidelity::Exact);
    let report = Report {
        from: source.name(),
        file: name.into(),
        exact,
        rules: rules_said,
        assumed: read.assumed,
    };
    Ok(Imported {
        rules: (exact || !options.strict).then_some(rules),
        report: match options.format {
            Format::Table => report.table(),
            Format::Json => report.json(),
        },
    })
}
