//! `/v1/rules…`: the rules in force, how they came to be, and changing them.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Map, Value, json};

mod above;
mod change;
mod precondition;

pub(super) use self::above::pass_on;
use super::{App, problem::Problem};
use crate::{
    rules::RuleText,
    serve::task::{Origin, Revision, RulesOnRecord},
};

/// The revision that an answer tells of, as a number.
const REVISION: HeaderName = HeaderName::from_static("weir-rules-revision");

/// What is answered under `/v1/rules`.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/rules", get(read).put(change::put))
        .route("/v1/rules/history", get(history))
        .route("/v1/rules/revisions/{revision}", get(read_revision))
        .route("/v1/rules/rollback", post(change::rollback))
}

async fn read(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let on_record = on_record(&app).await?;
    let revision = on_record.rules.revision;
    if precondition::has_it_already(&headers, revision) {
        return Ok((StatusCode::NOT_MODIFIED, tags(revision)).into_response());
    }
    match on_record.text(revision) {
        Some(text) => Ok(told(revision, &text)),
        None if revision == 0 => Err(Problem::no_rules()),
        None => Err(Problem::no_text(revision, &on_record)),
    }
}

async fn read_revision(
    State(app): State<Arc<App>>,
    revision: Result<Path<u64>, PathRejection>,
) -> Result<Response, Problem> {
    let on_record = on_record(&app).await?;
    let Ok(Path(revision)) = revision else {
        let detail = "a revision is a whole number, as in /v1/rules/revisions/7";
        return Err(Problem::malformed(detail).with("field", "revision"));
    };
    let text = on_record.text(revision);
    let text = text.ok_or_else(|| Problem::no_text(revision, &on_record))?;
    Ok(told(revision, &text))
}

async fn history(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let on_record = on_record(&app).await?;
    let revision = on_record.rules.revision;
    let revisions = on_record.revisions.iter();
    let history: Vec<Value> = revisions.map(|revision| describe(revision)).collect();
    let body = json!({ "revision": revision, "history": history });
    Ok((tags(revision), Json(body)).into_response())
}

/// What is on record, also while the disk is full.
async fn on_record(app: &App) -> Result<RulesOnRecord, Problem> {
    let _permit = app.ledger.admit_read()?;
    Ok(app.ledger.rules().await?)
}

fn told(revision: u64, text: &RuleText) -> Response {
    let kind = match text.is_json() {
        true => "application/json",
        false => "application/yaml",
    };
    let kind = [(header::CONTENT_TYPE, kind)];
    (tags(revision), kind, text.as_str().to_owned()).into_response()
}

/// The revision, as a tag and as a number.
fn tags(revision: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(tag) = HeaderValue::try_from(format!("\"{revision}\"")) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(REVISION, revision.into());
    headers
}

fn describe(revision: &Revision) -> Value {
    let (from, back_to) = match revision.origin {
        Origin::File => ("file", None),
        Origin::Api => ("api", None),
        Origin::Rollback(number) => ("rollback", Some(number)),
    };
    let mut told = Map::new();
    told.insert("revision".to_owned(), revision.number.into());
    told.insert(
        "at".to_owned(),
        (revision.at.as_micros() / 1_000_000).into(),
    );
    told.insert("from".to_owned(), from.into());
    if let Some(number) = back_to {
        told.insert("back_to".to_owned(), number.into());
    }
    told.insert("by".to_owned(), revision.by.clone().into());
    told.insert("summary".to_owned(), revision.summary.clone().into());
    told.insert("bytes".to_owned(), revision.bytes.into());
    told.insert("kept".to_owned(), revision.text.is_some().into());
    told.into()
}

impl RulesOnRecord {
    fn text(&self, revision: u64) -> Option<RuleText> {
        let mut revisions = self.revisions.iter();
        let found = revisions.find(|entry| entry.number == revision)?;
        found.text.clone()
    }
}

impl Problem {
    fn no_rules() -> Self {
        let title = "There are no rules";
        let detail = "none were ever put in force; PUT /v1/rules takes a rule file";
        Self::new(StatusCode::NOT_FOUND, "no-rules", title, detail)
    }

    fn no_text(revision: u64, on_record: &RulesOnRecord) -> Self {
        let kept = on_record.revisions.iter();
        let kept = kept.filter(|entry| entry.text.is_some());
        let kept: Vec<u64> = kept.map(|entry| entry.number).collect();
        let title = "There is no such revision";
        let detail = format!("no text is kept of revision {revision} of the rules");
        Self::new(StatusCode::NOT_FOUND, "no-such-revision", title, detail)
            .with("field", "revision")
            .with("kept", kept)
    }

    /// Others were faster.
    pub(super) fn rules_moved(revision: u64, detail: String) -> Self {
        let title = "Others have changed the rules";
        Self::new(StatusCode::CONFLICT, "rules-moved", title, detail).with("revision", revision)
    }
}
