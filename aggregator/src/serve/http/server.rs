//! Connections: how many, how long, how much of each; and how they end.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{App, DataDir, router};
use crate::{
    config::Limits,
    serve::{metrics::Metrics, task::LedgerHandle},
};

/// How long a connection may take over the head of a request, idle time before
/// it included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes in the head of a request.
const HEAD_BYTES_MAX: u32 = 32 << 10;

/// The most headers in a request.
const HEADERS_MAX: usize = 100;

/// The most requests at once on one connection.
const STREAMS_MAX: u32 = 256;

/// How long connections may take to finish once the service is stopping.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection too many is told.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-length: 0\r\nconnection: close\r\n\r\n";

/// Accepts connections until it is stopped.
pub(in crate::serve) struct Server {
    stop: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub(in crate::serve) fn start(
        listener: TcpListener,
        ledger: LedgerHandle,
        data: DataDir,
        metrics: &Arc<Metrics>,
        limits: &Limits,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let connections = Connections {
            router: router(App {
                ledger,
                data,
                metrics: Arc::clone(metrics),
                limits: *limits,
            }),
            room: Arc::new(Semaphore::new(limits.connections_max as usize)),
            metrics: Arc::clone(metrics),
            http: builder(),
            graceful: GracefulShutdown::new(),
        };
        let accepting = tokio::spawn(connections.accept(listener, stopped));
        Self { stop, accepting }
    }

    /// Stops accepting, and waits until the requests under way are answered.
    pub(in crate::serve) async fn stop(self) {
        // One that has ended needs no stopping, and a panic in it is logged.
        let _ = self.stop.send(());
        let _ = self.accepting.await;
    }
}

struct Connections {
    router: Router,
    room: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    http: Builder<TokioExecutor>,
    graceful: GracefulShutdown,
}

impl Connections {
    async fn accept(self, listener: TcpListener, mut stopped: oneshot::Receiver<()>) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = &mut stopped => break,
            };
            match accepted {
                Ok((stream, _)) => self.take(stream),
                // Out of files, say: those that are open may end meanwhile.
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        if timeout(FINISH_TIMEOUT, self.graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("some connections did not finish in time");
        }
    }

    fn take(&self, stream: TcpStream) {
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            tokio::spawn(turn_away(stream));
            return;
        };
        // Replies are whole when they are written; waiting for more is of no use.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(self.router.clone());
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        let connection = self.graceful.watch(connection.into_owned());
        let open = Open::new(place, Arc::clone(&self.metrics));
        tokio::spawn(async move {
            // A connection that broke off is its client's business.
            let _ = connection.await;
            drop(open);
        });
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX as usize);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEAD_TIMEOUT)
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX);
    http
}

async fn turn_away(mut stream: TcpStream) {
    // Best effort, and not for long: nobody is owed an answer here.
    let _ = timeout(Duration::from_secs(1), stream.write_all(TOO_MANY)).await;
}

/// An open connection's place.
struct Open {
    _place: OwnedSemaphorePermit,
    metrics: Arc<Metrics>,
}

impl Open {
    fn new(place: OwnedSemaphorePermit, metrics: Arc<Metrics>) -> Self {
        metrics.connections.inc();
        Self {
            _place: place,
            metrics,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}
