//! `GET /v1/openapi.json`: what this service understands, as OpenAPI 3.1.
//!
//! The document is written by hand. A test asks the service everything that it
//! shows, and compares.

use std::sync::LazyLock;

use axum::{http::header, response::IntoResponse};
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../openapi.json");

pub(super) async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT)
}

/// The paths in it, in order.
pub(super) fn paths() -> Vec<Value> {
    static PATHS: LazyLock<Vec<Value>> = LazyLock::new(|| {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
        let paths = document.get("paths").and_then(Value::as_object);
        let paths = paths.into_iter().flat_map(|paths| paths.keys());
        paths.map(|path| path.as_str().into()).collect()
    });
    PATHS.clone()
}
