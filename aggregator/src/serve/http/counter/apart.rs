//! Adds to counters that several members have: each member's go to it together, in the
//! order they came.

use std::sync::Arc;

use axum::{
    body::{Bytes, to_bytes},
    http::{HeaderMap, Method, StatusCode},
    response::Response,
};
use futures_util::future::join_all;
use limiter::counter::{Add, AddError, Added};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    serve::{
        http::{
            App,
            members::{Asked, Here, Members, Reached},
            problem::Problem,
        },
        task::{Permit, Refusal},
    },
    shared::group_of,
};

/// The longest answer of another member.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// What became of an add.
pub(super) enum Outcome {
    Here(Result<Added, AddError>),
    /// As another member told it.
    There(Value),
    Failed(Problem),
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Value>,
}

/// Adds of one group: their places among all.
struct Share<'a> {
    group: u32,
    places: Vec<usize>,
    adds: Vec<Add>,
    texts: Vec<&'a RawValue>,
}

/// Whether these are not all one group's.
pub(super) fn are_apart(adds: &[Add]) -> bool {
    let mut groups = adds.iter().map(|add| group_of(add.id.partition()));
    let first = groups.next();
    groups.any(|group| Some(group) != first)
}

/// Does each where it belongs. `texts` are what the adds were read from.
pub(super) async fn add(
    app: &Arc<App>,
    members: &Members,
    headers: &HeaderMap,
    adds: Vec<Add>,
    texts: &[&RawValue],
) -> Vec<Outcome> {
    let count = adds.len();
    let mut shares: Vec<Share<'_>> = Vec::new();
    for (place, (add, text)) in adds.into_iter().zip(texts).enumerate() {
        let group = group_of(add.id.partition());
        let known = shares.iter().position(|share| share.group == group);
        let at = known.unwrap_or(shares.len());
        if known.is_none() {
            shares.push(Share {
                group,
                places: Vec::new(),
                adds: Vec::new(),
                texts: Vec::new(),
            });
        }
        if let Some(share) = shares.get_mut(at) {
            share.places.push(place);
            share.adds.push(add);
            share.texts.push(text);
        }
    }
    let done = shares.iter().map(|share| share.done(app, members, headers));
    let mut outcomes: Vec<Outcome> = (0..count)
        .map(|_| Outcome::Failed(Problem::unanswered()))
        .collect();
    for (share, told) in shares.iter().zip(join_all(done).await) {
        for (place, outcome) in share.places.iter().zip(told) {
            if let Some(slot) = outcomes.get_mut(*place) {
                *slot = outcome;
            }
        }
    }
    outcomes
}

impl Share<'_> {
    async fn done(&self, app: &Arc<App>, members: &Members, headers: &HeaderMap) -> Vec<Outcome> {
        let all = |problem: Problem| {
            let each = self.places.iter();
            each.map(|_| Outcome::Failed(problem.clone())).collect()
        };
        let body = serde_json::json!({ "adds": self.texts }).to_string();
        let asked = Asked {
            method: &Method::POST,
            path: "/v1/counter/increment",
            headers,
            body: Bytes::from(body),
        };
        let here = AddHere {
            app,
            adds: &self.adds,
        };
        match members.reach(self.group, &asked, &here).await {
            Reached::Here(Ok(results)) => results.into_iter().map(Outcome::Here).collect(),
            Reached::Here(Err(refusal)) => all(refusal.into()),
            Reached::There(response) => match read(response).await {
                Some(results) => results.into_iter().map(Outcome::There).collect(),
                None => all(Problem::unknown("it refused")),
            },
            Reached::Unknown(why) => all(Problem::unknown(&why)),
            Reached::Nowhere => all(Problem::unowned()),
        }
    }
}

/// The counters of this member.
struct AddHere<'a> {
    app: &'a App,
    adds: &'a [Add],
}

impl Here for AddHere<'_> {
    type Answer = Result<Vec<Result<Added, AddError>>, Refusal>;

    async fn answer(&self) -> Option<Self::Answer> {
        let permit = Permit::of_a_part();
        let added = self.app.ledger.add(self.adds.to_vec(), permit).await;
        (!matches!(added, Err(Refusal::Elsewhere { .. }))).then_some(added)
    }
}

async fn read(response: Response) -> Option<Vec<Value>> {
    let good = response.status() == StatusCode::OK;
    let body = to_bytes(response.into_body(), ANSWER_BYTES_MAX)
        .await
        .ok()?;
    let answer: Answer = serde_json::from_slice(&body).ok()?;
    good.then_some(answer.results)
}
