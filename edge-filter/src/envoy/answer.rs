//! Answers to requests, as Envoy takes them.

use super::abi::{self, Map, Reply};
use crate::refusal::{Header, Refusal, is_grpc};

/// Answers the present request: a call of gRPC with a status of its own kind.
pub(super) fn refuse(refusal: &Refusal) {
    abi::set_property("weir.decision", refusal.reason.as_bytes());
    let details = format!("weir:{}", refusal.reason);
    let content_type = abi::map_value(Map::Request, "content-type");
    if content_type.is_some_and(|content_type| is_grpc(&content_type)) {
        let grpc = refusal.grpc();
        abi::respond(&Reply {
            status: refusal.status,
            details: &details,
            headers: &borrowed(&grpc.headers),
            body: grpc.message.as_bytes(),
            grpc: Some(grpc.status),
        });
        return;
    }
    abi::respond(&Reply {
        status: refusal.status,
        details: &details,
        headers: &borrowed(&refusal.headers),
        body: refusal.body.as_bytes(),
        grpc: None,
    });
}

/// Has the access log say why the present request was decided as it was.
pub(super) fn explain(line: &str) {
    abi::set_property("weir.explain", line.as_bytes());
}

fn borrowed(headers: &[Header]) -> Vec<(&str, &str)> {
    let headers = headers.iter();
    headers.map(|(name, value)| (&**name, &**value)).collect()
}
