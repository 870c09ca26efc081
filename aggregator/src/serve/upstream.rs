//! The way to the aggregator above: messages go out, answers come back, and requests
//! about the rules are passed on.
//!
//! Each message has a connection of its own that is kept for the next. One that is not
//! answered in time is given up; what was in it is sent again, since it counts once.

use std::{
    fs, io,
    path::PathBuf,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::Semaphore};

use crate::{
    chain::chain,
    client::{Answered, Client, ClientError, Exchange, Target},
    config::UpstreamTarget,
};

/// How long it may take to connect.
const CONNECT: Duration = Duration::from_secs(2);

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(3);

/// Messages that may be under way at once.
const UNDER_WAY_MAX: usize = 64;

/// The answer to who shows no token, or an old one.
const UNAUTHORIZED: u16 = 401;

/// Why there is no way to the aggregator above.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The token cannot be read.
    #[error("cannot read {}", file.display())]
    Token {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate or the address is of no use.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Reads what the way there needs: the token and the certificates.
pub(super) fn check(target: &UpstreamTarget) -> Result<(), UpstreamError> {
    clients(target).map(drop)
}

/// Carries messages, whoever they are from.
#[derive(Clone)]
pub(super) struct Carrier(Arc<Way>);

struct Way {
    target: UpstreamTarget,
    clients: RwLock<Vec<Arc<Client>>>,
    /// The one that is asked at present.
    present: AtomicUsize,
    runtime: Handle,
    room: Arc<Semaphore>,
}

impl Carrier {
    /// The way there; nothing is connected yet.
    pub(super) fn new(target: &UpstreamTarget, runtime: Handle) -> Result<Self, UpstreamError> {
        Ok(Self(Arc::new(Way {
            clients: RwLock::new(clients(target)?),
            target: target.clone(),
            present: AtomicUsize::new(0),
            runtime,
            room: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
        })))
    }

    /// Carries the body of a message there, and its answer to `done`; or why there is
    /// none.
    pub(super) fn carry(
        &self,
        body: Vec<u8>,
        done: impl FnOnce(Result<Vec<u8>, String>) + Send + 'static,
    ) {
        let Ok(place) = Arc::clone(&self.0.room).try_acquire_owned() else {
            return done(Err("as many messages are under way as may be".to_owned()));
        };
        let way = Arc::clone(&self.0);
        self.0.runtime.spawn_blocking(move || {
            let answer = match way.ask(Exchange::post("/v1/sync", body)) {
                Ok(answered) if answered.status == 200 => Ok(answered.body),
                Ok(answered) => Err(refused(&answered)),
                Err(error) => Err(chain(&error)),
            };
            drop(place);
            done(answer);
        });
    }

    /// Passes a request on, and takes the answer as it is.
    pub(super) async fn pass_on(&self, asked: Exchange) -> Result<Answered, String> {
        let way = Arc::clone(&self.0);
        let asking = self
            .0
            .runtime
            .spawn_blocking(move || way.ask(asked).map_err(|error| chain(&error)));
        asking.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl Way {
    /// Asks the one that answered last. The next one is asked next time if it does not
    /// answer, and the token is read again if it is refused.
    fn ask(&self, asked: Exchange) -> Result<Answered, ClientError> {
        let present = self.present.load(Ordering::Relaxed);
        let client = {
            let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
            let place = present.checked_rem(clients.len()).unwrap_or(0);
            clients.get(place).cloned()
        };
        let Some(client) = client else {
            return Err(ClientError::Url { url: String::new() });
        };
        let answer = client.exchange(asked);
        let moves_on = match &answer {
            Ok(answered) if answered.status == UNAUTHORIZED => {
                self.read_again();
                false
            }
            Ok(answered) => answered.status >= 500,
            Err(_) => true,
        };
        if moves_on {
            let next = present.wrapping_add(1);
            // Another thread may have moved on before.
            let _ =
                self.present
                    .compare_exchange(present, next, Ordering::Relaxed, Ordering::Relaxed);
        }
        answer
    }

    fn read_again(&self) {
        match clients(&self.target) {
            Ok(fresh) => *self.clients.write().unwrap_or_else(PoisonError::into_inner) = fresh,
            Err(error) => tracing::warn!(error = chain(&error), "the token for upstream is kept"),
        }
    }
}

fn clients(target: &UpstreamTarget) -> Result<Vec<Arc<Client>>, UpstreamError> {
    let token = target.token_file.as_ref().map(|file| {
        let read = fs::read_to_string(file).map_err(|source| UpstreamError::Token {
            file: file.clone(),
            source,
        });
        read.map(|text| text.trim().to_owned())
    });
    let token = token.transpose()?;
    let client = |url: &String| {
        let to = Target {
            url: url.clone(),
            token: token.clone(),
            ca: target.ca.clone(),
            cert: target.cert.clone(),
        };
        Ok(Arc::new(Client::with_patience(to, CONNECT, ANSWER)?))
    };
    target.urls.iter().map(client).collect()
}

/// What an answer says that is none.
fn refused(answered: &Answered) -> String {
    let text = String::from_utf8_lossy(&answered.body);
    let line: String = text.chars().take(300).collect();
    format!("status {}: {}", answered.status, line.trim())
}
