//! Rules of a region that has an aggregator above it are that one's: who asks for them
//! or changes them here is answered by it, and every region hears of the change.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderName, Method, StatusCode, header},
    middleware::Next,
    response::Response,
};

use super::{App, Problem, REVISION};
use crate::{client::Exchange, serve::http::body};

/// Headers of a request that are passed on.
const ASKED: [HeaderName; 4] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
];

/// Headers of an answer that are passed back.
const ANSWERED: [HeaderName; 5] = [
    header::CONTENT_TYPE,
    header::ETAG,
    header::RETRY_AFTER,
    header::ALLOW,
    REVISION,
];

/// Passes a request on to the aggregator above, if there is one.
pub(in crate::serve::http) async fn pass_on(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Some(upstream) = &app.upstream else {
        return Ok(next.run(request).await);
    };
    let (parts, sent) = request.into_parts();
    let (sent, _permit) = body::read(&app, &parts.headers, sent).await?;
    let path = parts.uri.path_and_query();
    let of = |name: HeaderName| Some((name.clone(), parts.headers.get(&name)?.clone()));
    let asked = Exchange {
        path: path.map_or_else(String::new, ToString::to_string),
        headers: ASKED.into_iter().filter_map(of).collect(),
        body: sent.to_vec(),
        method: parts.method.clone(),
    };
    let answered = upstream.pass_on(asked).await;
    let answered = answered.map_err(Problem::nobody_above)?;
    if parts.method != Method::GET {
        app.ledger.ask_upstream();
    }
    let mut response = Response::new(Body::from(answered.body));
    let status = StatusCode::from_u16(answered.status);
    *response.status_mut() = match status {
        // It is this region that it does not know, not the client.
        Ok(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) | Err(_) => StatusCode::BAD_GATEWAY,
        Ok(status) => status,
    };
    for (name, value) in answered.headers {
        if ANSWERED.contains(&name) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

impl Problem {
    fn nobody_above(why: String) -> Self {
        let title = "The aggregator above does not answer";
        let detail = format!("the rules are there, and it cannot be reached: {why}");
        Self::new(StatusCode::BAD_GATEWAY, "nobody-above", title, detail)
    }
}
