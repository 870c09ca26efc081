//! A request whose answer another member has goes there whole, and its answer comes back
//! as it is, events as they happen.
//!
//! Handlers say where it belongs: what they look at first is not looked at twice.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderValue, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{
    super::{App, problem::Problem},
    ELSEWHERE, Members,
    client::Asked,
    reach::{Here, Reached},
    was_forwarded,
};

/// What a handler says of a request that it cannot answer.
#[derive(Clone, Debug)]
pub(in crate::serve::http) enum Belongs {
    /// To a group that is not here.
    Elsewhere(u32),
    /// To several groups, which have to decide it together.
    Apart(Vec<u32>),
}

impl Belongs {
    fn of(response: &Response) -> Option<&Self> {
        response.extensions().get()
    }
}

/// Lets a request through; and if it turns out to be another member's, sends it on.
pub(in crate::serve::http) async fn forward(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(members) = &app.members else {
        return next.run(request).await;
    };
    if was_forwarded(request.headers()) {
        return marked(next.run(request).await);
    }
    // Cut up by itself; and what is of this member alone.
    if matches!(
        request.uri().path(),
        "/v1/sync" | "/metrics" | "/healthz" | "/readyz"
    ) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let body = match to_bytes(body, app.limits.body_bytes_max as usize).await {
        Ok(body) => body,
        Err(_) => return Problem::too_large(app.limits.body_bytes_max).into_response(),
    };
    let sent = Sent {
        members,
        parts,
        body,
        next,
    };
    sent.answer().await
}

/// Says in a header what only this member knows of an answer.
fn marked(mut response: Response) -> Response {
    if let Some(Belongs::Elsewhere(group)) = Belongs::of(&response) {
        let group = HeaderValue::from(*group);
        response.headers_mut().insert(ELSEWHERE, group);
    }
    response
}

/// A request, to be answered here or elsewhere, and perhaps more than once.
pub(super) struct Sent<'a> {
    members: &'a Members,
    pub(super) parts: Parts,
    body: Bytes,
    next: Next,
}

impl Sent<'_> {
    async fn answer(&self) -> Response {
        let here = self.here(None).await;
        match Belongs::of(&here).cloned() {
            Some(Belongs::Apart(groups)) => self.decide_apart(&groups).await,
            Some(Belongs::Elsewhere(group)) => self.reach(group, None).await,
            None => here,
        }
    }

    async fn here(&self, part: Option<&HeaderValue>) -> Response {
        let mut parts = self.parts.clone();
        if let Some(part) = part {
            parts.headers.insert(super::PART, part.clone());
        }
        let request = Request::from_parts(parts, Body::from(self.body.clone()));
        self.next.clone().run(request).await
    }

    /// The answer of whoever has a group, to the whole or to this part of it.
    pub(super) async fn reach(&self, group: u32, part: Option<&HeaderValue>) -> Response {
        let path = self.parts.uri.path_and_query();
        let mut headers = self.parts.headers.clone();
        if let Some(part) = part {
            headers.insert(super::PART, part.clone());
        }
        let asked = Asked {
            method: &self.parts.method,
            path: path.map_or("/", |path| path.as_str()),
            headers: &headers,
            body: self.body.clone(),
        };
        let here = AnswerHere { sent: self, part };
        match self.members.reach(group, &asked, &here).await {
            Reached::Here(response) | Reached::There(response) => response,
            Reached::Unknown(why) => Problem::unknown(&why).into_response(),
            Reached::Nowhere => Problem::unowned().into_response(),
        }
    }
}

/// The handlers of this member.
struct AnswerHere<'a> {
    sent: &'a Sent<'a>,
    part: Option<&'a HeaderValue>,
}

impl Here for AnswerHere<'_> {
    type Answer = Response;

    async fn answer(&self) -> Option<Response> {
        let response = self.sent.here(self.part).await;
        Belongs::of(&response).is_none().then_some(response)
    }
}

impl Problem {
    /// Another member may have done it.
    pub(in crate::serve::http) fn unknown(why: &str) -> Self {
        Self::unready(format!(
            "the member that has this did not answer ({why}); whether it was counted is not known"
        ))
    }

    /// Nobody could be asked.
    pub(in crate::serve::http) fn unowned() -> Self {
        Self::unready("nobody owns these partitions at present; nothing was counted")
    }
}
