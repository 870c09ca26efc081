//! `weir rules get`, `put`, `history`, `rollback`: the rules of a running aggregator.

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    cli::{
        fail, print,
        target::{Format, Target, failed, field},
    },
    client::ClientError,
    rules::{self, Difference},
};

use super::complain;

/// The exit code if others have changed the rules.
const MOVED: u8 = 3;

const GET_EXAMPLES: &str = "\
Examples:
  weir rules get
  weir rules get --revision 7 -o rules.yaml

The text is printed as it was put. Exit codes: 0 done, 1 refused, 2 not understood,
69 the service cannot be reached.";

const PUT_EXAMPLES: &str = "\
Examples:
  weir rules put rules.yaml --dry-run
  weir rules put rules.yaml
  weir rules put rules.yaml --if-match 7

The file is taken whole or not at all, and the lists that it names with it. With --if-match only if that revision is in
force: of two who change the same rules the second is told. Exit codes: 0 done, 3
another revision is in force, 1 refused (each error with its place), 2 not understood,
69 the service cannot be reached.";

const HISTORY_EXAMPLES: &str = "\
Examples:
  weir rules history
  weir rules history --format json

The latest change comes first; the last 100 are kept.";

const ROLLBACK_EXAMPLES: &str = "\
Examples:
  weir rules rollback 7 --dry-run
  weir rules rollback 7

Its text is put in force under a new revision. Exit codes as of weir rules put.";

/// What `weir rules get` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = GET_EXAMPLES)]
pub(in crate::cli) struct GetArgs {
    /// An earlier revision [default: the one in force]
    #[arg(long, value_name = "N")]
    revision: Option<u64>,
    /// Where to write it
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

/// What every change takes.
#[derive(Debug, clap::Args)]
struct How {
    /// Change nothing, and say what would change
    #[arg(long)]
    dry_run: bool,
    /// Only if this revision is in force
    #[arg(long, value_name = "N")]
    if_match: Option<u64>,
    /// How to say it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    target: Target,
}

/// What `weir rules put` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = PUT_EXAMPLES)]
pub(in crate::cli) struct PutArgs {
    /// The rule file
    file: PathBuf,
    #[command(flatten)]
    how: How,
}

/// What `weir rules history` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub(in crate::cli) struct HistoryArgs {
    /// How to say it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    target: Target,
}

/// What `weir rules rollback` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = ROLLBACK_EXAMPLES)]
pub(in crate::cli) struct RollbackArgs {
    /// The revision to go back to
    revision: u64,
    #[command(flatten)]
    how: How,
}

pub(super) fn get(args: GetArgs) -> ExitCode {
    let path = match args.revision {
        None => "/v1/rules".to_owned(),
        Some(revision) => format!("/v1/rules/revisions/{revision}"),
    };
    let text = args.target.client().and_then(|client| client.text(&path));
    let text = match text {
        Ok(text) => text,
        Err(error) => return failed(&error),
    };
    let Some(output) = args.output else {
        print(&text);
        return ExitCode::SUCCESS;
    };
    match std::fs::write(&output, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&format!("{}: cannot be written: {error}", output.display())),
    }
}

pub(super) fn put(args: PutArgs) -> ExitCode {
    let name = args.file.display().to_string();
    let bytes = match rules::with_lists(&args.file) {
        Ok(bytes) => bytes,
        Err(problems) => return complain(&problems.to_string()),
    };
    let how = args.how;
    let (path, tag) = (how.path("/v1/rules"), how.tag());
    let client = how.target.client();
    let answered = client.and_then(|client| client.put(&path, &bytes, tag.as_deref()));
    changed(answered, how.format, how.dry_run, &name)
}

pub(super) fn rollback(args: RollbackArgs) -> ExitCode {
    let how = args.how;
    let (path, tag) = (how.path("/v1/rules/rollback"), how.tag());
    let body = json!({ "revision": args.revision });
    let client = how.target.client();
    let answered = client.and_then(|client| client.post_if(&path, &body, tag.as_deref()));
    let name = format!("revision {}", args.revision);
    changed(answered, how.format, how.dry_run, &name)
}

impl How {
    fn path(&self, path: &str) -> String {
        match self.dry_run {
            true => format!("{path}?dry_run=true"),
            false => path.to_owned(),
        }
    }

    fn tag(&self) -> Option<String> {
        self.if_match.map(|revision| format!("\"{revision}\""))
    }
}

/// Says what became of a change.
fn changed(
    answered: Result<Value, ClientError>,
    format: Format,
    dry_run: bool,
    name: &str,
) -> ExitCode {
    match answered {
        Ok(answer) => {
            print(&match format {
                Format::Json => answer.to_string(),
                Format::Text => describe(&answer, dry_run),
            });
            ExitCode::SUCCESS
        }
        Err(ClientError::Refused(problem)) if problem.is("bad-rules") => {
            let errors = problem.errors();
            if errors.is_empty() {
                return fail(&problem);
            }
            let lines: Vec<String> = errors
                .iter()
                .map(|error| format!("{name}:{error}"))
                .collect();
            complain(&lines.join("\n"))
        }
        Err(ClientError::Refused(problem)) if problem.is("precondition") => {
            fail(&problem);
            ExitCode::from(MOVED)
        }
        Err(error) => failed(&error),
    }
}

fn describe(answer: &Value, dry_run: bool) -> String {
    let revision = field(answer, "revision");
    let changed = answer.get("changed") == Some(&Value::Bool(true));
    let head = match (dry_run, changed) {
        (true, _) => format!("nothing is changed; revision {revision} stays in force"),
        (false, true) => format!("revision {revision} is in force"),
        (false, false) => format!("revision {revision} is in force already"),
    };
    match serde_json::from_value::<Difference>(answer.clone()) {
        Ok(difference) => format!("{head}\n{}", difference.table()),
        Err(_) => head,
    }
}

pub(super) fn history(args: HistoryArgs) -> ExitCode {
    let client = args.target.client();
    match client.and_then(|client| client.get("/v1/rules/history")) {
        Ok(answer) => {
            print(&match args.format {
                Format::Json => answer.to_string(),
                Format::Text => lines(&answer),
            });
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

/// A line for each change.
fn lines(answer: &Value) -> String {
    let history = answer.get("history").and_then(Value::as_array);
    let mut text = format!("{:>8}  {:<29}  {:<16}  SUMMARY\n", "REVISION", "WHEN", "BY");
    for change in history.into_iter().flatten() {
        let by = match (field(change, "from"), field(change, "by")) {
            (from, by) if by.is_empty() => from,
            (_, by) => by,
        };
        let back_to = match field(change, "back_to") {
            number if number.is_empty() => String::new(),
            number => format!("back to {number}: "),
        };
        let at = change.get("at").and_then(Value::as_u64).unwrap_or_default();
        let when = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at));
        let [revision, summary] = ["revision", "summary"].map(|name| field(change, name));
        text += &format!("{revision:>8}  {when:<29}  {by:<16}  {back_to}{summary}\n");
    }
    text
}
