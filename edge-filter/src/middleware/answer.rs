//! What a client is told: a refusal in the words of its protocol, or the handler's
//! response with headers more.

use super::exports::types::{Fields, Response};
use super::exports::{no_fault, no_trailers, spawn, stream};
use crate::refusal::{Header, Refusal};

/// The answer to a client that is turned away; `grpc` if it made a call of that.
pub(super) fn refused(refusal: &Refusal, grpc: bool) -> Response {
    let (status, headers, body) = if grpc {
        (200, call(refusal), String::new())
    } else {
        (
            refusal.status,
            refusal.headers.clone(),
            refusal.body.clone(),
        )
    };
    let (mut sent, contents) = stream();
    let (response, _sent) = Response::new(fields(&headers), Some(contents), no_trailers());
    // Every rule's status is one that there is.
    let _ = response.set_status_code(status);
    spawn(async move {
        sent.write_all(body.into_bytes()).await;
    });
    response
}

/// The same response with other values of these headers.
pub(super) fn with_headers(response: Response, headers: &[Header]) -> Response {
    if headers.is_empty() {
        return response;
    }
    let status = response.get_status_code();
    let all = response.get_headers().clone();
    for (name, value) in headers {
        let _ = all.set(name, &[value.clone().into_bytes()]);
    }
    let (body, trailers) = Response::consume_body(response, no_fault());
    let (response, _sent) = Response::new(all, Some(body), trailers);
    let _ = response.set_status_code(status);
    response
}

/// An answer that is all trailers: a call's own status, and HTTP's 200.
fn call(refusal: &Refusal) -> Vec<Header> {
    let grpc = refusal.grpc();
    let mut headers = grpc.headers;
    headers.push(("content-type".into(), "application/grpc".to_owned()));
    headers.push(("grpc-status".into(), grpc.status.to_string()));
    headers.push(("grpc-message".into(), escaped(&grpc.message)));
    headers
}

/// As gRPC wants a message: anything but printable ASCII, and `%`, as its bytes.
fn escaped(message: &str) -> String {
    let mut out = String::new();
    for byte in message.bytes() {
        match byte {
            b' '..=b'$' | b'&'..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn fields(headers: &[Header]) -> Fields {
    let list = headers.iter();
    let list = list.map(|(name, value)| (name.to_string(), value.clone().into_bytes()));
    // One that a host will not have is left out, and not all of them.
    let good: Vec<_> = list
        .filter(|header| Fields::from_list(core::slice::from_ref(header)).is_ok())
        .collect();
    Fields::from_list(&good).unwrap_or_else(|_| Fields::new())
}
