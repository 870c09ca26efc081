//! `GET /v1/counter/{id}/watch`: server-sent events, one for each change.
//!
//! The first event tells the counter as it is. What changes while an event is on
//! its way, or faster than its reader takes them, is told as the latest of it. The
//! stream ends when the service stops.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::{
        IntoResponse, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::stream::unfold;
use limiter::counter::{Counter, CounterId};

use super::{Target, describe};
use crate::serve::{
    http::{App, problem::Problem},
    metrics::Metrics,
    task::{WatchPermit, Watching},
};

/// How long a stream may be silent: proxies hang up on those that are.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// One who watches.
struct Watcher {
    id: CounterId,
    watching: Watching,
    /// What was told last.
    told: Option<Option<Counter>>,
    _place: Place,
}

/// Their place among those who watch.
struct Place {
    _permit: WatchPermit,
    metrics: Arc<Metrics>,
}

pub(super) async fn watch(
    State(app): State<Arc<App>>,
    Target(id): Target,
) -> Result<impl IntoResponse, Problem> {
    let place = Place::new(app.ledger.admit_watch()?, &app.metrics);
    let permit = app.ledger.admit_read()?;
    let watcher = Watcher {
        watching: app.ledger.watch(id.clone(), permit).await?,
        id,
        told: None,
        _place: place,
    };
    let events = unfold(watcher, |mut watcher| async {
        let event = watcher.next().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(SILENCE_MAX)))
}

impl Watcher {
    /// The next event; none once the watches have ended.
    async fn next(&mut self) -> Option<Event> {
        let Watching { current, changes } = &mut self.watching;
        while self.told == Some(*current) {
            changes.changed().await.ok()?;
            *current = *changes.borrow_and_update();
        }
        self.told = Some(*current);
        let told = describe(&self.id, *current);
        Some(Event::default().data(told.to_string()))
    }
}

impl Place {
    fn new(permit: WatchPermit, metrics: &Arc<Metrics>) -> Self {
        metrics.watchers.inc();
        Self {
            _permit: permit,
            metrics: Arc::clone(metrics),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.metrics.watchers.dec();
    }
}
