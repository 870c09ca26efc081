//! From a configuration to a running task: open the log, read it, go.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use limiter::{counter::TenantLimits, time::Micros};
use tokio::sync::oneshot;

use super::{
    LedgerHandle, Task, TaskError, admission::Admission, books::Books, check::Ahead,
    chores::Sweeps, commit::Commits, snapshot::Snapshots, waiting::Waiting, watches::Watches,
    work::Event,
};
use crate::{
    config::Config,
    serve::{clock::Clock, health::HealthBoard, metrics::Metrics},
    store::{Disk, Durability, Log, Options, Position, Report},
};

/// What the task needs.
pub(in crate::serve) struct Setup {
    pub(in crate::serve) disk: Arc<dyn Disk>,
    pub(in crate::serve) clock: Box<dyn Clock>,
    pub(in crate::serve) metrics: Arc<Metrics>,
    pub(in crate::serve) health: Arc<HealthBoard>,
}

/// What it takes from the configuration.
struct Choices {
    data_dir: PathBuf,
    durability: Durability,
    snapshot_log_bytes: u64,
    tenant: TenantLimits,
    keys_max: u64,
    idempotency_lifetime: Micros,
    request_timeout: Duration,
}

/// Starts the task. What comes back last tells how it ended.
pub(in crate::serve) fn start(
    setup: Setup,
    config: &Config,
) -> std::io::Result<(LedgerHandle, oneshot::Receiver<Result<(), TaskError>>)> {
    let (events, inbox) = mpsc::channel();
    let handle = LedgerHandle {
        events: events.clone(),
        admission: Admission::new(&config.limits),
        health: Arc::clone(&setup.health),
        patience: config.limits.request_timeout,
    };
    let choices = Choices {
        data_dir: config.data_dir.clone(),
        durability: config.durability,
        snapshot_log_bytes: config.snapshot_log_bytes,
        tenant: config.tenant,
        keys_max: config.keys_max,
        idempotency_lifetime: config.idempotency_lifetime,
        request_timeout: config.limits.request_timeout,
    };
    let (ended, end) = oneshot::channel();
    thread::Builder::new()
        .name("ledger".to_owned())
        .spawn(move || {
            let result = open(setup, &choices, events, inbox).and_then(Task::run);
            // Whoever started it may have gone away.
            let _ = ended.send(result);
        })?;
    Ok((handle, end))
}

fn open(
    mut setup: Setup,
    choices: &Choices,
    events: mpsc::Sender<Event>,
    inbox: mpsc::Receiver<Event>,
) -> Result<Task, TaskError> {
    let seeds = hash_seeds()?;
    let mut books = Books::new(seeds, choices.tenant, choices.idempotency_lifetime);
    books.ledger.set_keys_max(choices.keys_max);
    let options = Options::default();
    let (log, report) = Log::open(setup.disk, &choices.data_dir, options, &mut books)?;
    let revision = books.ledger.rules().revision;
    books.rule_book.forget_after(revision);
    setup.clock.go_on_from(books.latest());
    describe(&report, setup.clock.uptime());
    let task = Task {
        books,
        log,
        clock: setup.clock,
        events: inbox,
        queue: VecDeque::new(),
        waiting: Waiting::default(),
        watches: Watches::default(),
        rules_at: Position::START,
        ahead: Ahead::default(),
        commits: Commits::start(choices.durability, &events)?,
        snapshots: Snapshots::new(
            choices.snapshot_log_bytes,
            report.snapshot_taken_at_ms,
            events,
        ),
        sweeps: Sweeps::default(),
        stopping: false,
        patience_max: choices.request_timeout,
        metrics: setup.metrics,
        health: setup.health,
    };
    task.report_serving();
    Ok(task)
}

fn describe(report: &Report, took: Duration) {
    tracing::info!(
        created = report.created,
        records = report.records,
        record_bytes = report.record_bytes,
        torn_bytes = report.torn_bytes,
        took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "the data directory is open"
    );
    for damage in &report.damaged_snapshots {
        tracing::warn!(%damage, "a snapshot was passed over; an older one or the log held all of it");
    }
}

/// Random, so that nobody can invent keys that make the tables slow.
fn hash_seeds() -> std::io::Result<[u64; 4]> {
    let mut seeds = [0; 4];
    for seed in &mut seeds {
        *seed = getrandom::u64().map_err(|error| std::io::Error::other(error.to_string()))?;
    }
    Ok(seeds)
}
