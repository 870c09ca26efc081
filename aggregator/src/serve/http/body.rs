//! Bodies: room is made for them before they are read, and none is read
//! further than its limit or longer than its time.

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{HeaderMap, header},
};
use http_body_util::LengthLimitError;
use serde::Deserialize;
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

/// Reads JSON, or says where in it something is wrong; `what` is what it should
/// be.
pub(super) fn json<'a, T: Deserialize<'a>>(what: &str, bytes: &'a [u8]) -> Result<T, Problem> {
    // Keeping track of the place costs time: only if something is wrong with it.
    serde_json::from_slice(bytes).map_err(|error| {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let place = serde_path_to_error::deserialize::<_, T>(&mut reader)
            .err()
            .map(|error| error.path().to_string())
            .filter(|place| place != ".");
        let problem =
            |field: &str| Problem::malformed(format!("the body is not {what}: {field}{error}"));
        match place {
            Some(place) => problem(&format!("{place}: ")).with("field", place),
            None => problem(""),
        }
    })
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
