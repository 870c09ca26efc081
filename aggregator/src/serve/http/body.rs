//! Bodies: room is made for them before they are read, and none is read
//! further than its limit or longer than its time.

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{HeaderMap, header},
};
use http_body_util::LengthLimitError;
use std::error::Error;
use tokio::time::timeout;

use super::{App, problem::Problem};
use crate::serve::task::Permit;

/// Reads a body, with the room that its request takes in the ledger.
pub(super) async fn read(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Permit), Problem> {
    let limit = app.limits.body_bytes_max;
    let too_large = || Problem::too_large(limit);
    let announced = match announced(headers) {
        Some(bytes) => u32::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes <= limit)
            .ok_or_else(too_large)?,
        None => limit,
    };
    let permit = app.ledger.admit(announced)?;
    let reading = timeout(app.limits.request_timeout, to_bytes(body, limit as usize));
    match reading.await {
        Err(_) => Err(Problem::slow_body()),
        Ok(Ok(bytes)) => Ok((bytes, permit)),
        Ok(Err(error)) if is_over_limit(&error) => Err(too_large()),
        Ok(Err(error)) => Err(Problem::malformed(format!("the body broke off: {error}"))),
    }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn is_over_limit(error: &axum::Error) -> bool {
    error
        .source()
        .is_some_and(|source| source.is::<LengthLimitError>())
}
