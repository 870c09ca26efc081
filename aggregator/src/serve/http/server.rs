//! Connections: how many, how long, how much of each; and how they end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto::Builder,
        graceful::{GracefulShutdown, Watcher},
    },
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    App,
    addresses::{Addresses, Visitor},
    farewell::Farewell,
    first_words::FirstWords,
    router,
    tls::{Refused, Tls},
};
use crate::serve::metrics::Metrics;

/// How long a connection may take over the head of a request, idle time before
/// it included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes in the head of a request.
const HEAD_BYTES_MAX: u32 = 32 << 10;

/// The most headers in a request.
const HEADERS_MAX: usize = 100;

/// The most requests at once on one connection.
const STREAMS_MAX: u32 = 256;

/// What a connection too many is told.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-length: 0\r\nconnection: close\r\n\r\n";

/// What who speaks plain HTTP where TLS is spoken is told.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\
    content-length: 40\r\nconnection: close\r\n\r\nthis port speaks TLS: ask with https://\n";

/// Accepts connections until it is stopped.
pub(in crate::serve) struct Server {
    stop: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub(in crate::serve) fn start(
        listener: TcpListener,
        app: App,
        tls: Option<Arc<Tls>>,
        drain_timeout: Duration,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let limits = &app.limits;
        let connections = Connections {
            room: Arc::new(Semaphore::new(limits.connections_max as usize)),
            addresses: Addresses::new(limits.connections_per_address_max),
            metrics: Arc::clone(&app.metrics),
            router: router(app),
            tls,
            http: builder(),
            graceful: GracefulShutdown::new(),
            farewell: Farewell::new(),
            ending: watch::Sender::default(),
            drain_timeout,
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
    room: Arc<Semaphore>,
    addresses: Addresses,
    metrics: Arc<Metrics>,
    router: Router,
    tls: Option<Arc<Tls>>,
    http: Builder<TokioExecutor>,
    graceful: GracefulShutdown,
    farewell: Farewell,
    /// Closed once the service is stopping: handshakes need not be finished.
    ending: watch::Sender<()>,
    /// How long connections may take to finish once the service is stopping.
    drain_timeout: Duration,
}

impl Connections {
    async fn accept(self, listener: TcpListener, mut stopped: oneshot::Receiver<()>) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = &mut stopped => break,
            };
            match accepted {
                Ok((stream, peer)) => self.take(stream, peer),
                // Out of files, say: those that are open may end meanwhile.
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
        drop((listener, self.ending));
        if timeout(self.drain_timeout, self.graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("some connections did not finish in time");
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        let (place, visitor) = match self.admit(peer) {
            Ok(admitted) => admitted,
            Err(reason) => {
                self.metrics.door.count_connection(reason);
                if self.tls.is_none() {
                    self.farewell.say(TOO_MANY, stream);
                }
                return;
            }
        };
        // Replies are whole when they are written; waiting for more is of no use.
        let _ = stream.set_nodelay(true);
        let open = Open::new(place, visitor, Arc::clone(&self.metrics));
        let talk = Talk {
            farewell: self.farewell.clone(),
            http: self.http.clone(),
            router: self.router.clone(),
            watcher: self.graceful.watcher(),
        };
        let (tls, ending) = (self.tls.clone(), self.ending.subscribe());
        tokio::spawn(async move {
            match tls {
                None => talk.over(stream).await,
                Some(tls) => talk.over_tls(&tls, stream, &open, ending).await,
            }
            drop(open);
        });
    }

    fn admit(&self, peer: SocketAddr) -> Result<(OwnedSemaphorePermit, Visitor), &'static str> {
        let place = Arc::clone(&self.room).try_acquire_owned();
        let place = place.map_err(|_| "all")?;
        let visitor = self.addresses.enter(peer.ip()).ok_or("address")?;
        Ok((place, visitor))
    }
}

/// What it takes to answer the requests of one connection.
struct Talk {
    farewell: Farewell,
    http: Builder<TokioExecutor>,
    router: Router,
    watcher: Watcher,
}

impl Talk {
    async fn over_tls(
        self,
        tls: &Tls,
        stream: TcpStream,
        open: &Open,
        mut ending: watch::Receiver<()>,
    ) {
        let accepted = tokio::select! {
            accepted = tls.accept(stream) => accepted,
            _ = ending.changed() => return,
        };
        match accepted {
            Ok(stream) => self.over(stream).await,
            Err(refused) => {
                open.metrics.door.count_connection(refused.reason());
                if let Refused::NotTls(stream) = refused {
                    self.farewell.say(PLAIN, stream);
                }
            }
        }
    }

    async fn over(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service = TowerToHyperService::new(self.router);
        let stream = FirstWords::within(HEAD_TIMEOUT, stream);
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        // A connection that broke off is its client's business.
        let _ = self.watcher.watch(connection.into_owned()).await;
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

/// An open connection's place.
struct Open {
    _place: OwnedSemaphorePermit,
    _visitor: Visitor,
    metrics: Arc<Metrics>,
}

impl Open {
    fn new(place: OwnedSemaphorePermit, visitor: Visitor, metrics: Arc<Metrics>) -> Self {
        metrics.connections.inc();
        Self {
            _place: place,
            _visitor: visitor,
            metrics,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}
