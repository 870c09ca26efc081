//! HTTP: what is answered where, and nothing about how connections are kept.

use std::{path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Version, header},
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::{get, post},
};

mod addresses;
mod backup;
mod body;
mod caller;
mod check;
mod counter;
mod enforced;
mod farewell;
mod first_words;
mod guard;
mod members;
mod openapi;
mod origin;
mod problem;
mod rules;
mod server;
mod status;
mod sync;
mod tls;

pub(super) use self::backup::DataDir;
pub(super) use self::members::Members;
use self::problem::Problem;
pub use self::tls::TlsError;
pub(super) use self::{
    server::Server,
    tls::{Contents as TlsContents, Tls},
};
use super::{gate::Gate, metrics::Metrics, task::LedgerHandle, upstream::Carrier};
use crate::config::Limits;

/// What every handler may use.
pub(super) struct App {
    pub(super) ledger: LedgerHandle,
    /// Where all of it is; none with a shared store.
    pub(super) data: Option<DataDir>,
    /// The other members, if a store is shared.
    pub(super) members: Option<Members>,
    /// The way to the aggregator above, if this is a region of one.
    pub(super) upstream: Option<Carrier>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) limits: Limits,
    /// Who is let in.
    pub(super) gate: Arc<Gate>,
    /// Whether log lines may show keys.
    pub(super) log_keys: bool,
    /// The rule file, if its word on the rules counts.
    pub(super) rule_file: Option<PathBuf>,
}

fn router(app: App) -> Router {
    let app = Arc::new(app);
    let of_rules = from_fn_with_state(Arc::clone(&app), rules::pass_on);
    Router::new()
        .route("/v1/sync", post(sync::sync))
        .route("/v1/ratelimit/check", post(check::check))
        .route("/v1/openapi.json", get(openapi::document))
        .merge(counter::routes())
        .merge(rules::routes().route_layer(of_rules))
        .route("/v1/backup", get(backup::backup))
        .route("/healthz", get(status::healthz))
        .route("/readyz", get(status::readyz))
        .route("/metrics", get(status::metrics))
        .method_not_allowed_fallback(no_such_method)
        .fallback(no_such_path)
        .layer(from_fn_with_state(Arc::clone(&app), members::forward))
        .layer(from_fn_with_state(Arc::clone(&app), guard::guard))
        .layer(from_fn_with_state(Arc::clone(&app), count))
        .with_state(app)
}

async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    app.metrics.count_response(response.status().as_u16());
    if app.ledger.is_draining() && version < Version::HTTP_2 {
        // Whoever asks again connects again, and so comes to another that is ready.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

async fn no_such_path(request: Request) -> Problem {
    Problem::no_such_path(request.uri().path())
}

async fn no_such_method(request: Request) -> Problem {
    Problem::no_such_method(request.method().as_str(), request.uri().path())
}
