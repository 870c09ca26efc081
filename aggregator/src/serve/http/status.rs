//! How the service is: `/healthz`, `/readyz`, `/metrics`.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use super::{App, problem::Problem};
use crate::serve::metrics::sum;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long the ledger may do nothing.
const PATIENCE: Duration = Duration::from_secs(4);

/// The process is alive, and its ledger too.
pub(super) async fn healthz(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    match app.ledger.moves(PATIENCE).await {
        true => Ok("alive\n"),
        false => Err(Problem::unready(format!(
            "the ledger has done nothing for {} s",
            PATIENCE.as_secs()
        ))),
    }
}

/// Requests are counted; or not, and why.
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    match app.ledger.obstacle() {
        None => Ok("ready\n"),
        Some(why) => Err(Problem::unready(why)),
    }
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let groups = app.ledger.observe().await;
    let depth = i64::try_from(app.ledger.depth()).unwrap_or(i64::MAX);
    app.metrics.queue_depth.set(depth);
    app.metrics.load.set_ready(app.ledger.obstacle().is_none());
    if let Some(data) = &app.data
        && let Some(room) = data.room().await
    {
        app.metrics.load.set_disk(room);
    }
    let mut page = app.metrics.encode();
    if !groups.is_empty() {
        let pages: Vec<String> = groups.iter().map(|metrics| metrics.encode()).collect();
        page = sum(&page, &pages);
    }
    ([(header::CONTENT_TYPE, OPENMETRICS)], page).into_response()
}
