//! `POST /v1/counter/increment`: one add, or many that are answered one by one.
//!
//! Many are not all or nothing: each is applied, refused or told again by itself,
//! in the order they came.

use std::{borrow::Cow, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue},
    response::{IntoResponse, Response},
};
use limiter::counter::{Add, Added, Bounds, CounterId, IdempotencyKey, TTL_SECS_MAX, Ttl};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use super::{
    Namespace,
    apart::{self, Outcome},
};
use crate::serve::{
    http::{App, body, caller::Caller, problem::Problem},
    task::Permit,
};

/// The most adds in one request.
const ADDS_MAX: usize = 1_000;

/// Says that an answer is that of an earlier add of the same idempotency key.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One<'a> {
    #[serde(borrow)]
    counter_id: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(default = "one")]
    delta: i64,
    min: Option<i64>,
    max: Option<i64>,
    ttl_s: Option<u64>,
    #[serde(borrow, default)]
    idempotency_key: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many<'a> {
    #[serde(borrow)]
    adds: Vec<&'a RawValue>,
}

/// Whether a body means to be many adds, whatever else it says.
#[derive(Deserialize)]
struct Meant {
    adds: Option<IgnoredAny>,
}

/// What is told of an add.
#[derive(Serialize)]
struct Told<'a> {
    applied: bool,
    counter_id: &'a str,
    value: i64,
}

/// What is told of one of many.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Told(Told<'a>),
    Refused(Value),
    /// As another member told it.
    Other(Value),
}

#[derive(Serialize)]
struct ManyTold<'a> {
    results: Vec<Entry<'a>>,
}

const fn one() -> i64 {
    1
}

pub(super) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (bytes, permit) = body::read(&app, &headers, body).await?;
    // Many begin with a field that one does not have: this fails at once.
    let Ok(one) = serde_json::from_slice::<One<'_>>(&bytes) else {
        return add_many(&app, &caller, &headers, &bytes, permit).await;
    };
    let (name, add) = one.into_add(&caller)?;
    let mut results = app.ledger.add(vec![add], permit).await?;
    let added = results.pop().ok_or_else(Problem::unanswered)??;
    let mut response = Json(Told::of(&name, &added)).into_response();
    if added.replayed {
        let told = HeaderValue::from_static("true");
        response.headers_mut().insert(REPLAYED, told);
    }
    Ok(response)
}

async fn add_many(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    bytes: &[u8],
    permit: Permit,
) -> Result<Response, Problem> {
    let many: Many<'_> = serde_json::from_slice(bytes).map_err(|_| neither(bytes))?;
    if many.adds.len() > ADDS_MAX {
        let got = many.adds.len();
        let detail = format!("adds has {got} entries; it may have {ADDS_MAX}");
        return Err(Problem::invalid("adds", detail).with("most", ADDS_MAX));
    }
    let mut adds = Vec::with_capacity(many.adds.len());
    let mut asked = Vec::with_capacity(many.adds.len());
    let mut texts = Vec::new();
    for text in many.adds {
        let one = body::json::<One<'_>>("an add", text.get().as_bytes());
        let named = one.and_then(|one| one.into_add(caller));
        asked.push(named.map(|(name, add)| {
            adds.push(add);
            texts.push(text);
            name
        }));
    }
    let results: Vec<Outcome> = match &app.members {
        Some(members) if apart::are_apart(&adds) => {
            apart::add(app, members, headers, adds, &texts).await
        }
        _ => {
            let added = app.ledger.add(adds, permit).await?;
            added.into_iter().map(Outcome::Here).collect()
        }
    };
    let mut results = results.into_iter();
    let entries = asked.iter().map(|asked| match asked {
        Ok(name) => entry(name, results.next()),
        Err(problem) => Entry::Refused(problem.clone().into_body()),
    });
    let results = entries.collect();
    Ok(Json(ManyTold { results }).into_response())
}

/// Why a body is neither one add nor many.
fn neither(bytes: &[u8]) -> Problem {
    let meant: Result<Meant, _> = serde_json::from_slice(bytes);
    let why = match meant.is_ok_and(|meant| meant.adds.is_some()) {
        true => body::json::<Many<'_>>("a list of adds", bytes).err(),
        false => body::json::<One<'_>>("an add", bytes).err(),
    };
    why.unwrap_or_else(Problem::unanswered)
}

/// What is told of one of many that came to be asked.
fn entry(name: &str, result: Option<Outcome>) -> Entry<'_> {
    match result {
        Some(Outcome::Here(Ok(added))) => Entry::Told(Told::of(name, &added)),
        Some(Outcome::Here(Err(error))) => Entry::Refused(Problem::from(error).into_body()),
        Some(Outcome::There(told)) => Entry::Other(told),
        Some(Outcome::Failed(problem)) => Entry::Refused(problem.into_body()),
        None => Entry::Refused(Problem::unanswered().into_body()),
    }
}

impl<'a> Told<'a> {
    const fn of(name: &'a str, added: &Added) -> Self {
        Self {
            applied: added.applied,
            counter_id: name,
            value: added.value,
        }
    }
}

impl<'a> One<'a> {
    /// The add, and what its counter was called.
    fn into_add(self, caller: &Caller) -> Result<(Cow<'a, str>, Add), Problem> {
        let namespace = self.namespace.as_deref().unwrap_or(Namespace::DEFAULT);
        let id = CounterId::new(&caller.tenant, namespace, &self.counter_id)?;
        let bounds = Bounds::new(self.min, self.max)
            .ok_or_else(|| Problem::invalid("min", "min is over max: no sum can be within"))?;
        let ttl = self.ttl_s.map(|secs| {
            Ttl::from_secs(secs).ok_or_else(|| {
                let detail = format!("ttl_s is {secs}; it must be between 1 and {TTL_SECS_MAX}");
                Problem::invalid("ttl_s", detail)
            })
        });
        let key = self.idempotency_key.as_deref().map(IdempotencyKey::new);
        let add = Add {
            id,
            delta: self.delta,
            bounds,
            ttl: ttl.transpose()?,
            idempotency: key.transpose()?,
        };
        Ok((self.counter_id, add))
    }
}
