//! `POST /v1/sync`: a source's message, in and out as protobuf.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use limiter::{key::PARTITIONS, ledger::SyncError, wire::SyncRequest};
use prost::Message;

use super::{App, body, members, problem::Problem};

const PROTOBUF: &str = "application/x-protobuf";

pub(super) async fn sync(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (bytes, permit) = body::read(&app, &headers, body).await?;
    let message = SyncRequest::decode(bytes).map_err(|error| {
        Problem::malformed(format!(
            "the body is not a weir.sync.v1.SyncRequest: {error}"
        ))
    })?;
    if message.batches.len() > PARTITIONS as usize {
        let most = format!("a message has at most {PARTITIONS} batches, one for each partition");
        return Err(Problem::malformed(most).with("field", "batches"));
    }
    let reply = match &app.members {
        None => app.ledger.sync(message, permit).await?,
        Some(members) => members::sync(&app, members, &headers, message, permit).await?,
    };
    let kind = [(header::CONTENT_TYPE, PROTOBUF)];
    Ok((kind, reply.encode_to_vec()).into_response())
}

impl Problem {
    pub(super) fn from_sync(error: &SyncError, detail: String) -> Self {
        let title = "The message means nothing";
        Self::new(StatusCode::BAD_REQUEST, "meaningless", title, detail)
            .with(error.part, error.index)
            .with("group", error.group)
    }
}
