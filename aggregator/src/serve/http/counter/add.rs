//! `POST /v1/counter/increment`: one add, or many that are answered one by one.
//!
//! Many are not all or nothing: each is applied, refused or told again by itself,
//! in the order they came.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue},
    response::{IntoResponse, Response},
};
use limiter::counter::{
    Add, AddError, Added, Bounds, CounterId, IdempotencyKey, TTL_SECS_MAX, Ttl,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json, value::RawValue};

use super::Namespace;
use crate::serve::http::{App, body, caller::Caller, problem::Problem};

/// The most adds in one request.
const ADDS_MAX: usize = 1_000;

/// Says that an answer is that of an earlier add of the same idempotency key.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    counter_id: String,
    #[serde(default)]
    namespace: Namespace,
    #[serde(default = "one")]
    delta: i64,
    min: Option<i64>,
    max: Option<i64>,
    ttl_s: Option<u64>,
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many {
    adds: Vec<Box<RawValue>>,
}

/// Whether a body means to be many adds, whatever else it says.
#[derive(Deserialize)]
struct Meant {
    adds: Option<IgnoredAny>,
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
    let one = match body::json::<One>("an add", &bytes) {
        Ok(one) => one,
        Err(problem) => {
            let meant: Result<Meant, _> = serde_json::from_slice(&bytes);
            if meant.is_ok_and(|meant| meant.adds.is_some()) {
                return add_many(&app, &caller, &bytes, permit).await;
            }
            return Err(problem);
        }
    };
    let add = one.into_add(&caller)?;
    let name = add.id.name().to_owned();
    let mut results = app.ledger.add(vec![add], permit).await?;
    let added = results.pop().ok_or_else(Problem::unanswered)??;
    let mut response = Json(describe(&name, &added)).into_response();
    if added.replayed {
        let told = HeaderValue::from_static("true");
        response.headers_mut().insert(REPLAYED, told);
    }
    Ok(response)
}

async fn add_many(
    app: &App,
    caller: &Caller,
    bytes: &[u8],
    permit: crate::serve::task::Permit,
) -> Result<Response, Problem> {
    let many: Many = body::json("a list of adds", bytes)?;
    if many.adds.len() > ADDS_MAX {
        let got = many.adds.len();
        let detail = format!("adds has {got} entries; it may have {ADDS_MAX}");
        return Err(Problem::invalid("adds", detail).with("most", ADDS_MAX));
    }
    let asked = many.adds.iter().map(|text| {
        let one: One = body::json("an add", text.get().as_bytes())?;
        one.into_add(caller)
    });
    let asked: Vec<Result<Add, Problem>> = asked.collect();
    let adds = asked.iter().filter_map(|add| add.as_ref().ok().cloned());
    let mut results = app.ledger.add(adds.collect(), permit).await?.into_iter();
    let told: Vec<Value> = asked
        .into_iter()
        .map(|asked| told(asked, &mut results))
        .collect();
    Ok(Json(json!({ "results": told })).into_response())
}

/// What is told of one of many: the next result, if it came to be asked.
fn told(
    asked: Result<Add, Problem>,
    results: &mut impl Iterator<Item = Result<Added, AddError>>,
) -> Value {
    let added = asked.and_then(|add| {
        let added = results.next().ok_or_else(Problem::unanswered)??;
        Ok(describe(add.id.name(), &added))
    });
    added.unwrap_or_else(Problem::into_body)
}

fn describe(name: &str, added: &Added) -> Value {
    json!({ "counter_id": name, "value": added.value, "applied": added.applied })
}

impl One {
    fn into_add(self, caller: &Caller) -> Result<Add, Problem> {
        let id = CounterId::new(&caller.tenant, &self.namespace.0, &self.counter_id)?;
        let bounds = Bounds::new(self.min, self.max)
            .ok_or_else(|| Problem::invalid("min", "min is over max: no sum can be within"))?;
        let ttl = self.ttl_s.map(|secs| {
            Ttl::from_secs(secs).ok_or_else(|| {
                let detail = format!("ttl_s is {secs}; it must be between 1 and {TTL_SECS_MAX}");
                Problem::invalid("ttl_s", detail)
            })
        });
        let key = self.idempotency_key.as_deref().map(IdempotencyKey::new);
        Ok(Add {
            id,
            delta: self.delta,
            bounds,
            ttl: ttl.transpose()?,
            idempotency: key.transpose()?,
        })
    }
}
