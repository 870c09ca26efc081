//! HTTP as a member speaks it to another: connections are kept, and nothing is waited
//! for longer than a request may take.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header, uri::InvalidUri},
};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::time::timeout;

use super::FORWARDED;

/// How long a connection may take to come about: members are near.
const CONNECT: Duration = Duration::from_millis(500);

/// Headers that are of one connection, and not of what is asked.
const HOP: [header::HeaderName; 6] = [
    header::CONNECTION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::EXPECT,
    header::UPGRADE,
];

/// Asks other members.
pub(super) struct Client {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    patience: Duration,
}

/// Why a member did not answer.
pub(super) enum NoAnswer {
    /// It has not heard of the request.
    Unheard(String),
    /// It may have taken it.
    Unknown(String),
}

/// What is asked of a member.
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Bytes,
}

impl Client {
    pub(super) fn new(patience: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(30))
            // A connection that broke off while idle has heard of nothing.
            .retry_canceled_requests(true)
            .build(connector);
        Self { http, patience }
    }

    /// Asks the member at `url`; the body of the answer is still to come.
    pub(super) async fn ask(
        &self,
        url: &str,
        asked: &Asked<'_>,
    ) -> Result<Response<Body>, NoAnswer> {
        let unheard = |error: InvalidUri| NoAnswer::Unheard(error.to_string());
        let uri: Uri = format!("{url}{}", asked.path).parse().map_err(unheard)?;
        let mut request = Request::new(Full::new(asked.body.clone()));
        *request.method_mut() = asked.method.clone();
        *request.uri_mut() = uri;
        for (name, value) in asked.headers {
            if !HOP.contains(name) {
                request.headers_mut().append(name, value.clone());
            }
        }
        let mark = HeaderValue::from_static("1");
        request.headers_mut().insert(FORWARDED, mark);
        match timeout(self.patience, self.http.request(request)).await {
            Ok(Ok(response)) => Ok(response.map(of_incoming)),
            Ok(Err(error)) if error.is_connect() => Err(NoAnswer::Unheard(error.to_string())),
            Ok(Err(error)) => Err(NoAnswer::Unknown(error.to_string())),
            Err(_) => Err(NoAnswer::Unknown("it did not answer in time".to_owned())),
        }
    }
}

fn of_incoming(body: Incoming) -> Body {
    Body::new(body)
}
