//! From a configuration to a running task: open the log, read it, go.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use limiter::{counter::TenantLimits, key::PARTITIONS, time::Micros};
use tokio::sync::oneshot;

use super::{
    Groups, LedgerHandle, Task, TaskError, admission::Admission, book_log::BookLog, books::Books,
    check::Ahead, chores::Sweeps, commit::Commits, handle::To, snapshot::Snapshots, upward::Upward,
    waiting::Waiting, watches::Watches, work::Event,
};
use crate::{
    config::Config,
    serve::{clock::Clock, health::HealthBoard, metrics::Metrics, upstream::Carrier},
    shared::{Claim, GROUPS, Link, SharedLog, group_of},
    store::{Disk, Durability, Log, Options, Position, Report},
};

/// What the task needs.
pub(in crate::serve) struct Setup {
    pub(in crate::serve) place: Place,
    pub(in crate::serve) clock: Box<dyn Clock>,
    pub(in crate::serve) shown: Shown,
}

/// Where it shows how it is, and to whom it speaks.
#[derive(Clone)]
pub(in crate::serve) struct Shown {
    pub(in crate::serve) metrics: Arc<Metrics>,
    pub(in crate::serve) health: Arc<HealthBoard>,
    /// The way to the aggregator above, if there is one.
    pub(in crate::serve) carrier: Option<Carrier>,
}

/// Where the books are kept.
pub(in crate::serve) enum Place {
    /// In the data directory, on this disk: all of them.
    Disk(Arc<dyn Disk>),
    /// In a group of the shared store that was claimed: its partitions.
    Shared(Link, Claim),
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
    region: String,
}

/// Starts the task. What comes back last tells how it ended.
pub(in crate::serve) fn start(
    setup: Setup,
    config: &Config,
) -> std::io::Result<(LedgerHandle, oneshot::Receiver<Result<(), TaskError>>)> {
    let health = Arc::clone(&setup.shown.health);
    let (events, end) = start_one(setup, config)?;
    let handle = LedgerHandle {
        to: To::All(events),
        admission: Admission::new(&config.limits),
        health,
        patience: config.limits.request_timeout,
    };
    Ok((handle, end))
}

/// A handle of the groups that are here, or come to be.
pub(in crate::serve) fn of_groups(
    groups: &Arc<Groups>,
    health: &Arc<HealthBoard>,
    config: &Config,
) -> LedgerHandle {
    LedgerHandle {
        to: To::Groups(Arc::clone(groups)),
        admission: Admission::new(&config.limits),
        health: Arc::clone(health),
        patience: config.limits.request_timeout,
    }
}

/// How a task is reached, and what tells how it ended.
pub(super) type Started = (
    mpsc::Sender<Event>,
    oneshot::Receiver<Result<(), TaskError>>,
);

/// Starts one task: of all partitions, or of one group.
pub(super) fn start_one(setup: Setup, config: &Config) -> std::io::Result<Started> {
    let (events, inbox) = mpsc::channel();
    let inner = events.clone();
    // What is bounded for all is bounded for each of the groups by its part.
    let parts = match setup.place {
        Place::Disk(_) => 1,
        Place::Shared(..) => u64::from(GROUPS),
    };
    let choices = Choices {
        data_dir: config.data_dir.clone(),
        durability: config.durability,
        snapshot_log_bytes: config.snapshot_log_bytes.div_ceil(parts),
        tenant: TenantLimits {
            counters_max: config.tenant.counters_max.div_ceil(parts),
            bytes_max: config.tenant.bytes_max.div_ceil(parts),
        },
        keys_max: config.keys_max,
        idempotency_lifetime: config.idempotency_lifetime,
        request_timeout: config.limits.request_timeout,
        region: config.region.clone(),
    };
    let (ended, end) = oneshot::channel();
    thread::Builder::new()
        .name("ledger".to_owned())
        .spawn(move || {
            let result = open(setup, &choices, inner, inbox).and_then(Task::run);
            // Whoever started it may have gone away.
            let _ = ended.send(result);
        })?;
    Ok((events, end))
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
    let opened = open_log(setup.place, choices, &mut books)?;
    let revision = books.ledger.rules().revision;
    books.rule_book.forget_after(revision);
    setup.clock.go_on_from(books.latest());
    if let Some(report) = &opened.report {
        describe(report, setup.clock.uptime());
    }
    let upward = setup
        .shown
        .carrier
        .map(|carrier| Upward::new(carrier, &events));
    let mut task = Task {
        books,
        log: opened.log,
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
            opened.report.and_then(|report| report.snapshot_taken_at_ms),
            events,
            opened.partitions,
        ),
        sweeps: Sweeps::default(),
        upward: None,
        stopping: false,
        patience_max: choices.request_timeout,
        metrics: setup.shown.metrics,
        health: setup.shown.health,
    };
    if let Some(upward) = upward {
        task.join(&choices.region, upward)?;
    }
    task.report_serving();
    Ok(task)
}

/// A log, and what it has records of.
struct Opened {
    log: BookLog,
    partitions: Vec<u32>,
    report: Option<Report>,
}

fn open_log(place: Place, choices: &Choices, books: &mut Books) -> Result<Opened, TaskError> {
    match place {
        Place::Disk(disk) => {
            let options = Options::default();
            let (log, report) = Log::open(disk, &choices.data_dir, options, books)?;
            Ok(Opened {
                log: BookLog::Disk(log),
                partitions: (0..PARTITIONS).collect(),
                report: Some(report),
            })
        }
        Place::Shared(link, claim) => {
            let group = link.group();
            let log = SharedLog::open(link, &claim, books)?;
            // The first has the rules and the clock, whosever it is.
            let ours = |partition: &u32| *partition == 0 || group_of(*partition) == group;
            Ok(Opened {
                log: BookLog::Shared(log),
                partitions: (0..PARTITIONS).filter(ours).collect(),
                report: None,
            })
        }
    }
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
