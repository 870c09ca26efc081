//! The gate as HTTP has it: what each path needs, where the token stands, and how
//! it is said that one does not get in.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{App, caller::Caller, problem::Problem};
use crate::{
    auth::Right,
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
    if !app.gate.asks() && is_from_elsewhere(request.headers()) {
        app.metrics.door.count_request("foreign_page");
        return foreign_page().into_response();
    }
    let access = access(request.method(), path);
    match app.gate.enter(bearer(request.headers()), access) {
        Ok(known) => {
            request.extensions_mut().insert(Caller {
                tenant: known.tenant.into(),
                token: known.token.map(Into::into),
            });
            next.run(request).await
        }
        Err(refused) => {
            app.metrics.door.count_request(refused.reason());
            answer(refused)
        }
    }
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

/// Whether a page in a browser sent it that is not of this machine. Without tokens
/// whoever runs on this machine may do all, and a browser does: it must not do it
/// for any page that it shows.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    !origins.all(|origin| origin.to_str().is_ok_and(is_of_this_machine))
}

fn is_of_this_machine(origin: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else {
        return false;
    };
    let host = origin.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    host == "localhost" || address.parse().is_ok_and(is_loopback)
}

fn foreign_page() -> Problem {
    let detail = "without a token file, no page from elsewhere may ask through a browser here";
    let status = StatusCode::FORBIDDEN;
    Problem::new(status, "foreign-page", "A page from elsewhere asks", detail)
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
    fn a_page_of_this_machine_is_told_from_all_others() {
        for ours in [
            "http://localhost:8080",
            "http://127.0.0.1",
            "https://[::1]:1",
        ] {
            assert!(is_of_this_machine(ours), "{ours}");
        }
        for other in [
            "http://localhost.example.com",
            "https://example.com:8080",
            "http://192.0.2.1",
            "null",
            "",
        ] {
            assert!(!is_of_this_machine(other), "{other}");
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
