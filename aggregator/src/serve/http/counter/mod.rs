//! `/v1/counter/…`: counters that are added to, read, watched, reset, deleted.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::get,
};
use limiter::counter::{AddError, Counter, CounterId, NameError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

mod add;
mod apart;
mod target;
mod watch;

use self::target::{Namespace, Target};
use super::{App, body, caller::Caller, problem::Problem};

/// What is answered under `/v1/counter/`. A counter may be called as a path is.
pub(super) fn routes() -> Router<Arc<App>> {
    let named = || get(read).delete(delete);
    Router::new()
        .route("/v1/counter/increment", named().post(add::add))
        .route("/v1/counter/reset", named().post(reset))
        .route("/v1/counter/{counter_id}", named())
        .route("/v1/counter/{counter_id}/watch", get(watch::watch))
}

/// What a reset says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    counter_id: String,
    #[serde(default)]
    namespace: Namespace,
}

async fn read(State(app): State<Arc<App>>, target: Target) -> Result<Json<Value>, Problem> {
    let permit = app.ledger.admit_read()?;
    match app.ledger.read(target.0.clone(), permit).await? {
        Some(counter) => Ok(Json(describe(&target.0, Some(counter)))),
        None => Err(Problem::never_written(&target.0)),
    }
}

async fn delete(State(app): State<Arc<App>>, target: Target) -> Result<Json<Value>, Problem> {
    let permit = app.ledger.admit(0)?;
    let was = app.ledger.delete(target.0.clone(), permit).await?;
    let name = target.0.name();
    Ok(Json(
        json!({ "counter_id": name, "deleted": was.is_some() }),
    ))
}

async fn reset(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let (bytes, permit) = body::read(&app, &headers, body).await?;
    let asked: Reset = body::json("a reset", &bytes)?;
    let id = CounterId::new(&caller.tenant, &asked.namespace.0, &asked.counter_id)?;
    let counter = app.ledger.reset(id.clone(), permit).await?;
    Ok(Json(describe(&id, Some(counter))))
}

/// A counter, as it is told; its end only if it has one.
fn describe(id: &CounterId, counter: Option<Counter>) -> Value {
    let mut told = Map::new();
    told.insert("counter_id".to_owned(), id.name().into());
    let value = counter.map(|counter| counter.value);
    told.insert("value".to_owned(), value.into());
    if let Some(end) = counter.and_then(|counter| counter.expires) {
        let seconds = end.as_micros().div_ceil(1_000_000);
        told.insert("expires_at".to_owned(), seconds.into());
    }
    told.into()
}

impl Problem {
    fn never_written(id: &CounterId) -> Self {
        let (name, namespace) = (id.name(), id.namespace());
        let detail = format!("counter {name:?} of namespace {namespace:?} was never written");
        let title = "There is no such counter";
        Self::new(StatusCode::NOT_FOUND, "never-written", title, detail)
    }

    pub(super) fn invalid(field: &str, detail: impl Into<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "invalid", "A value cannot be", detail).with("field", field)
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self::invalid(error.field(), error.to_string())
    }
}

impl From<AddError> for Problem {
    fn from(error: AddError) -> Self {
        let detail = error.to_string();
        match error {
            AddError::Overflow { value, .. } => {
                let title = "The sum is too large";
                Self::new(StatusCode::CONFLICT, "overflow", title, detail)
                    .with("field", "delta")
                    .with("value", value)
            }
            AddError::KeyReused => {
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                let title = "The idempotency key is another add's";
                Self::new(status, "idempotency-key-reused", title, detail)
                    .with("field", "idempotency_key")
            }
            AddError::TooMuch(limit) => {
                let status = StatusCode::TOO_MANY_REQUESTS;
                let title = "The tenant keeps as much as it may";
                Self::new(status, "tenant-limit", title, detail)
                    .with("limit", limit.what)
                    .with("most", limit.most)
            }
        }
    }
}
