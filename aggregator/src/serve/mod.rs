//! `weir serve`: puts the ledger's task, the rule file and HTTP together, and
//! takes them apart again in order.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, runtime::Handle, sync::oneshot, task::JoinHandle};

mod clock;
mod door;
mod gate;
mod health;
mod http;
mod keeper;
mod metrics;
mod rule_change;
mod rule_content;
mod rule_file;
mod signals;
mod task;
mod upstream;
mod watched;

pub use clock::{Clock, SystemClock};
pub use health::{Health, HealthBoard};
pub use http::TlsError;
pub use rule_file::RuleSourceError;
pub use task::{CommitFailure, TaskError};
pub use upstream::UpstreamError;

use self::{
    door::Door,
    http::{App, DataDir, Members, Server},
    keeper::{Keeper, KeeperHandle},
    metrics::Metrics,
    rule_file::RuleSource,
    task::{Groups, LedgerHandle, Place, Shown},
    upstream::Carrier,
};
use crate::{
    config::{Config, ConfigError, is_loopback},
    shared::StoreUrl,
    store::{Disk, RealDisk},
};

/// Why the service did not start, or ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The rules at start have to be good: there are none to fall back on.
    #[error("cannot start with these rules")]
    Rules(#[from] RuleSourceError),
    /// The tokens at start have to be good, too.
    #[error("cannot start with these tokens")]
    Tokens(#[source] ConfigError),
    /// And so do the certificates.
    #[error("cannot start with these certificates")]
    Tls(#[from] TlsError),
    /// The aggregator above has to be known, too.
    #[error("cannot start as a region of the aggregator above")]
    Upstream(#[from] UpstreamError),
    /// The address is not to be had.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Threads or signals are not to be had.
    #[error("cannot start")]
    Start(#[from] io::Error),
    /// The ledger's task gave up.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Serves until a signal ends it. `listening` is told the address.
pub fn run(config: Config, listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let signal = signals::first()?;
        let clock = Box::new(SystemClock::start());
        let running = Running::start(config, Arc::new(RealDisk), clock).await?;
        listening(running.address());
        running.until(signal).await
    })
}

/// Reads what a service with this configuration reads before it listens: rules, tokens
/// and certificates. An error is what would keep it from starting.
pub fn check(config: Config) -> Result<(), ServeError> {
    let from = config.rules_from;
    let rules = config.rules.clone().map(|path| RuleSource::new(path, from));
    rules.map(|mut file| file.load()).transpose()?;
    Door::open(&config)?;
    Ok(())
}

/// Who keeps the books going.
enum Keeping {
    /// One task, and what tells how it ended.
    Task(oneshot::Receiver<Result<(), TaskError>>),
    /// A task for each group that is here.
    Keeper(KeeperHandle),
}

/// What is counted with, and where.
struct Ledgers {
    handle: LedgerHandle,
    keeping: Keeping,
    data: Option<DataDir>,
    members: Option<Members>,
}

/// A service that runs.
pub struct Running {
    address: SocketAddr,
    health: Arc<HealthBoard>,
    drain_delay: Duration,
    ledger: LedgerHandle,
    server: Server,
    keeping: Keeping,
    watches: Vec<JoinHandle<()>>,
}

impl Running {
    /// Starts a service. It answers while its log is still being read, if only
    /// to say so.
    pub async fn start(
        config: Config,
        disk: Arc<dyn Disk>,
        clock: Box<dyn Clock>,
    ) -> Result<Self, ServeError> {
        let from = config.rules_from;
        let mut rule_file = config.rules.clone().map(|path| RuleSource::new(path, from));
        let rules = rule_file.as_mut().map(RuleSource::load).transpose()?;
        let door = Door::open(&config)?;
        let listener = listen(config.listen).await?;
        let address = listener.local_addr()?;
        let metrics = Arc::new(Metrics::new(&config.region));
        metrics.load.set_limits(&config);
        let health = Arc::new(HealthBoard::new());
        let upstream = config.upstream.as_ref();
        let carrier = upstream.map(|target| Carrier::new(target, Handle::current()));
        let carrier = carrier.transpose()?;
        let shown = Shown {
            metrics: Arc::clone(&metrics),
            health: Arc::clone(&health),
            carrier: carrier.clone(),
        };
        let ledgers = match &config.store {
            None => Ledgers::of_one(disk, clock, &config, shown)?,
            Some(store) => Ledgers::shared(store, address, &config, shown)?,
        };
        let Ledgers {
            handle: ledger,
            keeping,
            data,
            members,
        } = ledgers;
        let app = App {
            ledger: ledger.clone(),
            data,
            members,
            upstream: carrier,
            metrics: Arc::clone(&metrics),
            limits: config.limits,
            gate: Arc::clone(&door.gate),
            log_keys: config.log_keys,
            rule_file: rule_file.as_ref().and_then(RuleSource::whose_word_counts),
        };
        let server = Server::start(listener, app, door.tls(), config.drain.timeout);
        let mut watches = door.watch(&metrics);
        watches.extend(rule_file.zip(rules).map(|(file, (seen, proposal))| {
            let (ledger, metrics) = (ledger.clone(), Arc::clone(&metrics));
            tokio::spawn(file.keep_in_force(seen, proposal, ledger, metrics))
        }));
        announce(address, &config);
        Ok(Self {
            address,
            health,
            drain_delay: config.drain.delay,
            ledger,
            server,
            keeping,
            watches,
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` comes or the ledger's task gives up, then stops: says that
    /// it is about to, answers whoever still comes, and writes what was counted.
    pub async fn until(mut self, end: impl Future<Output = ()>) -> Result<(), ServeError> {
        let noticed = noticed(end, &self.health, self.drain_delay);
        let early = match &mut self.keeping {
            Keeping::Task(ended) => tokio::select! {
                () = noticed => None,
                ended = ended => Some(ended),
            },
            Keeping::Keeper(keeper) => {
                noticed.await;
                // What arrives meanwhile is sent on to those who take over.
                keeper.leave().await;
                None
            }
        };
        if early.is_some() {
            self.health.set(Health::Stopping);
        }
        self.watches.iter().for_each(JoinHandle::abort);
        self.ledger.end_watches();
        self.server.stop().await;
        self.health.set(Health::Stopping);
        let ended = match (early, self.keeping) {
            (Some(ended), _) => ended,
            (None, Keeping::Task(ended)) => {
                self.ledger.stop();
                ended.await
            }
            (None, Keeping::Keeper(keeper)) => {
                // A panic in it is logged.
                let _ = tokio::task::spawn_blocking(move || keeper.end()).await;
                Ok(Ok(()))
            }
        };
        ended.unwrap_or(Err(TaskError::Gone("the ledger's task")))?;
        tracing::info!("stopped; everything counted is on record");
        Ok(())
    }
}

/// Waits until the service is to end, and until whoever sends requests here has had
/// time to notice. Nobody sends any to one that was not ready.
async fn noticed(end: impl Future<Output = ()>, health: &HealthBoard, delay: Duration) {
    end.await;
    let ready = health.obstacle().is_none();
    health.drain();
    if ready && !delay.is_zero() {
        let delay_ms = delay.as_millis();
        tracing::info!(delay_ms, "not ready any more, and answering still");
        tokio::time::sleep(delay).await;
    }
}

impl Ledgers {
    /// One that has everything, in the data directory.
    fn of_one(
        disk: Arc<dyn Disk>,
        clock: Box<dyn Clock>,
        config: &Config,
        shown: Shown,
    ) -> Result<Self, ServeError> {
        let data = DataDir::new(Arc::clone(&disk), &config.data_dir);
        let setup = task::Setup {
            place: Place::Disk(disk),
            clock,
            shown,
        };
        let (handle, ended) = task::start(setup, config)?;
        Ok(Self {
            handle,
            keeping: Keeping::Task(ended),
            data: Some(data),
            members: None,
        })
    }

    /// One for each group of the shared store that comes to be here.
    fn shared(
        store: &StoreUrl,
        address: SocketAddr,
        config: &Config,
        shown: Shown,
    ) -> Result<Self, ServeError> {
        let (metrics, health) = (Arc::clone(&shown.metrics), Arc::clone(&shown.health));
        let groups = Arc::new(Groups::new());
        let url = config.advertise.clone();
        let url = url.unwrap_or_else(|| format!("http://{address}"));
        let keeper = Keeper::new(store, url, &groups, config, shown)?;
        tracing::info!(%store, member = keeper.member().id, url = keeper.member().url, "joining");
        Ok(Self {
            handle: task::of_groups(&groups, &health, config),
            members: Some(Members::new(&groups, &config.limits, &metrics)),
            keeping: Keeping::Keeper(keeper.start()?),
            data: None,
        })
    }
}

/// Says where it listens, and to whom.
fn announce(address: SocketAddr, config: &Config) {
    let (tokens, tls) = (config.token_file.is_some(), config.tls.is_some());
    tracing::info!(%address, region = config.region, tokens, tls, "listening");
    if !tokens {
        tracing::info!("there is no token file: only this machine may connect, and may do all");
    } else if !tls && !is_loopback(config.listen) {
        tracing::warn!("tokens cross the network as they are: set tls_cert and tls_key");
    }
}

async fn listen(listen: SocketAddr) -> Result<TcpListener, ServeError> {
    let bound = TcpListener::bind(listen).await;
    bound.map_err(|source| ServeError::Listen { listen, source })
}
