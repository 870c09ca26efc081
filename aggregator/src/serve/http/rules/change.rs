//! `PUT /v1/rules` and `POST /v1/rules/rollback`: other rules, or what they would
//! change.
//!
//! Once it is under way a change is finished, whether its client waits for it or not.

use std::{path::Path, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{App, Problem, precondition::Precondition, tags};
use crate::{
    auth::hide_tokens,
    chain::chain,
    rules::{Diagnostic, Problems},
    serve::{
        http::{body, caller::Caller},
        rule_change::{Author, Outcome, Proposal, ProposalError, change},
        task::{Origin, Permit},
    },
};

/// The most errors of one rule file that are told.
const ERRORS_MAX: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    /// Whether nothing is to change, and only to be told what would.
    #[serde(default)]
    dry_run: bool,
}

/// Which text is to be in force again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rollback {
    revision: u64,
}

/// A change that a client asks for.
struct Asked {
    dry_run: bool,
    precondition: Precondition,
    author: Author,
    /// Room in the ledger.
    permit: Permit,
}

pub(super) async fn put(
    State(app): State<Arc<App>>,
    caller: Caller,
    options: Result<Query<Options>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let dry_run = may_change(&app, options)?;
    let precondition = Precondition::of(&headers)?;
    let (bytes, permit) = body::read(&app, &headers, body).await?;
    check_kind(&headers, &bytes)?;
    let asked = Asked {
        dry_run,
        precondition,
        author: author(&caller, Origin::Api),
        permit,
    };
    make(app, asked, bytes.to_vec()).await
}

pub(super) async fn rollback(
    State(app): State<Arc<App>>,
    caller: Caller,
    options: Result<Query<Options>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let dry_run = may_change(&app, options)?;
    let precondition = Precondition::of(&headers)?;
    let (bytes, permit) = body::read(&app, &headers, body).await?;
    let Rollback { revision } = body::json("a rollback", &bytes)?;
    let on_record = app.ledger.rules().await?;
    let text = on_record.text(revision);
    let text = text.ok_or_else(|| Problem::no_text(revision, &on_record))?;
    let asked = Asked {
        dry_run,
        precondition,
        author: author(&caller, Origin::Rollback(revision)),
        permit,
    };
    make(app, asked, text.as_str().as_bytes().to_vec()).await
}

/// Whether it is for a dry run; refused if the rules are the rule file's alone.
fn may_change(app: &App, options: Result<Query<Options>, QueryRejection>) -> Result<bool, Problem> {
    let Query(options) = options.map_err(|error| Problem::malformed(error.body_text()))?;
    match &app.rule_file {
        Some(file) if !options.dry_run => Err(Problem::rules_from_file(file)),
        _ => Ok(options.dry_run),
    }
}

fn author(caller: &Caller, origin: Origin) -> Author {
    let by = caller.token.as_deref().map(str::to_owned);
    Author { by, origin }
}

/// A body that is said to be JSON has to be: it is given back under that name.
fn check_kind(headers: &HeaderMap, bytes: &[u8]) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind
        .split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    match is_json {
        true => body::json("JSON, as its content type says", bytes).map(|_: Value| ()),
        false => Ok(()),
    }
}

/// Makes the change in a task of its own, which no client ends by hanging up.
async fn make(app: Arc<App>, asked: Asked, text: Vec<u8>) -> Result<Response, Problem> {
    let made = tokio::spawn(async move {
        let proposal = tokio::task::spawn_blocking(move || Proposal::read("rules", &text)).await;
        let proposal = Arc::new(proposal.map_err(|_| Problem::unanswered())??);
        let accept = |revision| asked.precondition.accept(revision);
        let (author, dry_run) = (&asked.author, asked.dry_run);
        let outcome = change(&app.ledger, &proposal, author, dry_run, accept).await?;
        drop(asked.permit);
        if !dry_run {
            let (revision, by) = (outcome.revision, author.by.as_deref());
            tracing::info!(revision, changed = outcome.changed, by, "rules were put");
        }
        Ok(describe(&outcome, dry_run))
    });
    made.await.unwrap_or_else(|_| Err(Problem::unanswered()))
}

fn describe(outcome: &Outcome, dry_run: bool) -> Response {
    let mut body = json!({
        "revision": outcome.revision,
        "dry_run": dry_run,
        "changed": outcome.changed,
        "summary": outcome.difference.summary(),
    });
    let difference = serde_json::to_value(&outcome.difference).unwrap_or_default();
    if let (Some(body), Value::Object(difference)) = (body.as_object_mut(), difference) {
        body.extend(difference);
    }
    (tags(outcome.revision), Json(body)).into_response()
}

impl From<ProposalError> for Problem {
    fn from(error: ProposalError) -> Self {
        let detail = match &error {
            ProposalError::Wrong(Problems(all)) => {
                let (count, first) = (all.len(), all.first());
                let first = first.map(locate).unwrap_or_default();
                match count {
                    1 => first,
                    _ => format!("{count} errors, the first {first}"),
                }
            }
            other => chain(other),
        };
        let errors = match error {
            ProposalError::Wrong(Problems(all)) => all,
            _ => Vec::new(),
        };
        let told: Vec<Value> = errors.iter().take(ERRORS_MAX).map(tell).collect();
        let title = "The rule file is wrong";
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "bad-rules", title, hide_tokens(&detail)).with("errors", told)
    }
}

/// An error with its place, in one line.
fn locate(error: &Diagnostic) -> String {
    let place = error
        .place
        .map(|place| format!("{}:{}: ", place.line, place.column));
    let path = match error.path.as_str() {
        "" => String::new(),
        path => format!("{path}: "),
    };
    format!("{}{path}{}", place.unwrap_or_default(), error.message)
}

fn tell(error: &Diagnostic) -> Value {
    let line = error.place.map(|place| place.line);
    let column = error.place.map(|place| place.column);
    let (path, message) = (hide_tokens(&error.path), hide_tokens(&error.message));
    json!({ "line": line, "column": column, "path": path, "message": message })
}

impl Problem {
    fn rules_from_file(file: &Path) -> Self {
        let detail = format!(
            "the rules come from {} (--rules), and change with it; with --rules-from api \
             they are changed here",
            file.display()
        );
        let title = "The rules come from a file";
        Self::new(StatusCode::CONFLICT, "rules-from-file", title, detail)
    }
}
