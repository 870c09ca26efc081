//! The gate as HTTP has it: what each path needs, where the token stands, and how
//! it is said that one does not get in.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use futures_util::StreamExt;

use super::{App, caller::Caller, origin, problem::Problem};
use crate::{
    auth::{Digest, Right},
    serve::gate::{Access, Refused},
};

/// Paths that are open to everyone: they tell whoever runs the service how it is,
/// and whoever asks what it understands, and nobody what it counts.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/v1/openapi.json"];

/// What each path needs, the first that fits: where it begins, what reading it
/// needs, and what everything else does. A path that is in neither list is
/// nobody's, so that a new one is not open by mistake.
const NEEDS: [(&str, Right, Right); 7] = [
    ("/v1/sync", Right::Sync, Right::Sync),
    ("/v1/ratelimit/", Right::Check, Right::Check),
    ("/v1/counter", Right::Read, Right::Count),
    ("/v1/rules", Right::Read, Right::Rules),
    ("/v1/usage", Right::Read, Right::Read),
    ("/v1/backup", Right::Backup, Right::Backup),
    ("/metrics", Right::Read, Right::Read),
];

/// Lets a request through with its `Caller`, or answers why not.
pub(super) async fn guard(
    State(app): State<Arc<App>>,
    path: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = path.as_ref().map(MatchedPath::as_str);
    if path.is_some_and(|path| OPEN.contains(&path)) {
        return next.run(request).await;
    }
    if !app.gate.asks() && origin::is_elsewhere(request.headers()) {
        app.metrics.door.count_request("foreign_page");
        return origin::problem().into_response();
    }
    let access = access(request.method(), path);
    match app.gate.enter(bearer(request.headers()), access) {
        Ok(known) => {
            request.extensions_mut().insert(Caller {
                tenant: known.tenant.into(),
                token: known.token.map(Into::into),
            });
            let response = next.run(request).await;
            end_with_its_token(response, &app, known.digest, access)
        }
        Err(refused) => {
            tracing::debug!(reason = refused.reason(), path, "refused");
            app.metrics.door.count_request(refused.reason());
            answer(refused)
        }
    }
}

/// The response; and if it goes on for ever, as events do, only for as long as its
/// token lets it.
fn end_with_its_token(
    response: Response,
    app: &Arc<App>,
    digest: Option<Digest>,
    access: Access,
) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if digest.is_none() || kind.is_none_or(|kind| kind != "text/event-stream") {
        return response;
    }
    let app = Arc::clone(app);
    let unwelcome = async move { app.gate.until_unwelcome(digest, access).await };
    response.map(|body| {
        let events = body.into_data_stream();
        Body::from_stream(events.take_until(Box::pin(unwelcome)))
    })
}

/// What a request needs. To a path that is not there, a token of any kind: who has
/// none learns nothing of the others.
fn access(method: &Method, path: Option<&str>) -> Access {
    let Some(path) = path else {
        return Access::Known;
    };
    let needs = NEEDS.iter().find(|(start, ..)| path.starts_with(start));
    match needs {
        Some((_, read, _)) if matches!(*method, Method::GET | Method::HEAD) => Access::Right(*read),
        Some((.., other)) => Access::Right(*other),
        None => Access::Nobody,
    }
}

/// The token of a request. Of two, neither counts.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, token) = value.as_bytes().split_at_checked("bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

fn answer(refused: Refused) -> Response {
    match refused {
        Refused::NoToken => challenge(
            Problem::unauthorized("send a token: `Authorization: Bearer weir_...`"),
            "Bearer realm=\"weir\"".to_owned(),
        ),
        Refused::UnknownToken => challenge(
            Problem::unauthorized("nobody knows this token, or no longer"),
            "Bearer realm=\"weir\", error=\"invalid_token\"".to_owned(),
        ),
        Refused::NoRight { name, needs, held } => {
            let needs = needs.map_or("none that there is", Right::name);
            let detail = format!("this needs the right {needs}; token {name} has {held}");
            let problem = Problem::new(
                StatusCode::FORBIDDEN,
                "no-right",
                "The token does not give this right",
                detail,
            )
            .with("needs", needs)
            .with("held", held.names());
            let scope = format!("error=\"insufficient_scope\", scope=\"{needs}\"");
            challenge(problem, format!("Bearer realm=\"weir\", {scope}"))
        }
        Refused::TooFast {
            whose,
            per_second,
            wait,
        } => {
            let detail = format!("the {whose} may send {per_second} requests a second");
            let title = "Too many requests";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-fast", title, detail)
                .with("requests_per_second", per_second.get())
                .retry_after(wait.as_secs_ceil().max(1))
                .into_response()
        }
    }
}

fn challenge(problem: Problem, challenge: String) -> Response {
    let mut response = problem.into_response();
    if let Ok(value) = HeaderValue::try_from(challenge) {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

impl Problem {
    fn unauthorized(detail: &str) -> Self {
        let status = StatusCode::UNAUTHORIZED;
        Self::new(status, "unauthorized", "A token is needed", detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(values: &[&str]) -> HeaderMap {
        let value = |value: &&str| HeaderValue::from_str(value).unwrap();
        let values = values.iter().map(value);
        values.map(|value| (header::AUTHORIZATION, value)).collect()
    }

    #[test]
    fn a_token_stands_after_its_scheme_and_there_is_only_one() {
        let token = |values: &[&str]| bearer(&with(values)).map(<[u8]>::to_vec);
        assert_eq!(token(&["Bearer abc"]), Some(b"abc".to_vec()));
        assert_eq!(token(&["bEARER  abc "]), Some(b"abc".to_vec()));
        for none in [
            &["Basic abc"][..],
            &["Bearer"],
            &["abc"],
            &[],
            &["Bearer a"; 2],
        ] {
            assert_eq!(token(none), None, "{none:?}");
        }
    }

    #[test]
    fn every_path_needs_the_right_that_is_meant_for_it() {
        let right = |method, path| access(&method, Some(path));
        for (method, path, needs) in [
            (Method::POST, "/v1/sync", Right::Sync),
            (Method::POST, "/v1/ratelimit/check", Right::Check),
            (Method::POST, "/v1/counter/increment", Right::Count),
            (Method::POST, "/v1/counter/reset", Right::Count),
            (Method::DELETE, "/v1/counter/{counter_id}", Right::Count),
            (Method::GET, "/v1/counter/{counter_id}", Right::Read),
            (Method::GET, "/v1/counter/{counter_id}/watch", Right::Read),
            (Method::GET, "/v1/rules", Right::Read),
            (Method::PUT, "/v1/rules", Right::Rules),
            (Method::GET, "/v1/rules/history", Right::Read),
            (Method::GET, "/v1/rules/revisions/{revision}", Right::Read),
            (Method::POST, "/v1/rules/rollback", Right::Rules),
            (Method::GET, "/v1/usage", Right::Read),
            (Method::GET, "/v1/backup", Right::Backup),
            (Method::GET, "/metrics", Right::Read),
        ] {
            assert_eq!(right(method, path), Access::Right(needs), "{path}");
        }
        assert_eq!(right(Method::GET, "/new"), Access::Nobody);
        assert_eq!(access(&Method::GET, None), Access::Known);
    }
}
