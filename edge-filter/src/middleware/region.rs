//! One message to the region, and its answer.

use super::exports::types::{Fields, Method, Request, RequestOptions, Response, Scheme};
use super::exports::{client, is_over, no_fault, no_trailers, spawn, stream};
use super::variables::Variables;

/// The most bytes of an answer that are read: as many as a set of rules may have, and
/// some more.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// The answer of status 200 to a message; none if there was none.
pub(super) async fn post(message: Vec<u8>, variables: &Variables) -> Option<Vec<u8>> {
    let mut headers = vec![
        (
            "content-type".to_owned(),
            b"application/x-protobuf".to_vec(),
        ),
        (
            "content-length".to_owned(),
            message.len().to_string().into_bytes(),
        ),
    ];
    if let Some(token) = &variables.config.token {
        let bearer = format!("Bearer {}", token.reveal()).into_bytes();
        headers.push(("authorization".to_owned(), bearer));
    }
    let headers = Fields::from_list(&headers).ok()?;
    let (mut body, contents) = stream();
    let options = options(u64::from(variables.config.timeout_ms) * 1_000_000);
    let (request, _sent) = Request::new(headers, Some(contents), no_trailers(), Some(options));
    request.set_method(&Method::Post).ok()?;
    let scheme = match variables.region.secure {
        true => Scheme::Https,
        false => Scheme::Http,
    };
    request.set_scheme(Some(&scheme)).ok()?;
    request
        .set_authority(Some(&variables.region.authority))
        .ok()?;
    request.set_path_with_query(Some("/v1/sync")).ok()?;
    spawn(async move {
        body.write_all(message).await;
    });
    let response = client::send(request).await.ok()?;
    read(response).await
}

async fn read(response: Response) -> Option<Vec<u8>> {
    if response.get_status_code() != 200 {
        return None;
    }
    let (mut body, _trailers) = Response::consume_body(response, no_fault());
    let mut whole = Vec::new();
    loop {
        let (result, part) = body.read(Vec::with_capacity(16 * 1024)).await;
        whole.extend_from_slice(&part);
        if whole.len() > ANSWER_MAX {
            return None;
        }
        if is_over(&result) {
            return Some(whole);
        }
    }
}

/// How long a call may take, in nanoseconds. A host that has no such options is one whose
/// own patience counts.
fn options(timeout_ns: u64) -> RequestOptions {
    let options = RequestOptions::new();
    let _ = options.set_connect_timeout(Some(timeout_ns));
    let _ = options.set_first_byte_timeout(Some(timeout_ns));
    let _ = options.set_between_bytes_timeout(Some(timeout_ns));
    options
}
