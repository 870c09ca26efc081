//! A request whose answer another member has goes there whole, and its answer comes back
//! as it is, events as they happen.
//!
//! Handlers say where it belongs: what they look at first is not looked at twice.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderValue, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use limiter::time::Micros;
use tokio::time::sleep;

use super::{
    super::{App, problem::Problem},
    ELSEWHERE, Members,
    client::{Asked, NoAnswer},
    was_forwarded,
};
use crate::serve::task::Whereabouts;

/// How long a request waits for partitions that are between two owners: as long as it
/// takes until others notice that one is gone.
const PATIENCE: Micros = Micros::from_millis(6_000);

/// How soon it is looked again if nothing is said to have changed.
const AGAIN: Duration = Duration::from_millis(20);

/// What a handler says of a request that belongs to a group that is not here.
#[derive(Clone, Copy)]
pub(in crate::serve::http) struct Elsewhere(pub(in crate::serve::http) u32);

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
    Sent {
        members,
        parts,
        body,
    }
    .answer(next)
    .await
}

/// Says in a header what only this member knows of an answer.
fn marked(mut response: Response) -> Response {
    if let Some(Elsewhere(group)) = response.extensions().get::<Elsewhere>().copied() {
        response.headers_mut().insert(ELSEWHERE, group.into());
    }
    response
}

struct Sent<'a> {
    members: &'a Members,
    parts: Parts,
    body: Bytes,
}

impl Sent<'_> {
    async fn answer(self, next: Next) -> Response {
        let give_up = self.members.groups.now().after(PATIENCE);
        loop {
            let mut changes = self.members.groups.subscribe();
            let request = Request::from_parts(self.parts.clone(), Body::from(self.body.clone()));
            let here = next.clone().run(request).await;
            let Some(Elsewhere(group)) = here.extensions().get::<Elsewhere>().copied() else {
                return here;
            };
            if let Whereabouts::At(owner) = self.members.groups.whereabouts(group) {
                match self.ask(&owner.url).await {
                    Some(response) => return response,
                    None => sleep(AGAIN).await,
                }
            }
            if self.members.groups.now() >= give_up {
                self.members.metrics.cluster.count_forward("no_owner");
                return here;
            }
            if self.members.groups.whereabouts(group) == Whereabouts::Nowhere {
                self.members.groups.changed(&mut changes, AGAIN * 5).await;
            }
        }
    }

    /// The owner's answer; none if it has taken nothing and may be asked again.
    async fn ask(&self, url: &str) -> Option<Response> {
        let metrics = &self.members.metrics.cluster;
        let path = self.parts.uri.path_and_query();
        let asked = Asked {
            method: &self.parts.method,
            path: path.map_or("/", |path| path.as_str()),
            headers: &self.parts.headers,
            body: self.body.clone(),
        };
        match self.members.client.ask(url, &asked).await {
            Ok(response) if response.headers().contains_key(ELSEWHERE) => {
                metrics.count_forward("elsewhere");
                None
            }
            Ok(mut response) => {
                metrics.count_forward("answered");
                let via = HeaderValue::from_static("member");
                response.headers_mut().insert("weir-answered-by", via);
                Some(response)
            }
            Err(NoAnswer::Unheard(why)) => {
                metrics.count_forward("unheard");
                tracing::debug!(url, why, "a member was not reached");
                None
            }
            Err(NoAnswer::Unknown(why)) => {
                metrics.count_forward("unknown");
                let detail = format!(
                    "the member that has this did not answer ({why}); whether it was counted is \
                     not known"
                );
                Some(Problem::unready(detail).into_response())
            }
        }
    }
}
