//! How much may be under way: so many requests, and so many bytes of them.
//!
//! Room is made before a body is read and given back when its answer leaves.
//! Who finds none is refused at once: nothing queues for a place in the queue.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::work::Refusal;
use crate::{config::Limits, serve::clock::Stopwatch};

/// The room there is.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    requests: Arc<Semaphore>,
    requests_max: usize,
    bytes: Arc<Semaphore>,
    watchers: Arc<Semaphore>,
}

/// Room for one request. Dropping it gives the room back.
#[derive(Debug)]
pub(in crate::serve) struct Permit {
    _room: Option<[OwnedSemaphorePermit; 2]>,
    since: Stopwatch,
}

impl Permit {
    /// For a part of a request, which has room as a whole.
    pub(in crate::serve) fn of_a_part() -> Self {
        Self {
            _room: None,
            since: Stopwatch::start(),
        }
    }

    /// The same for a request that is whole, and waits from now on.
    pub(super) fn queued(mut self) -> Self {
        self.since = Stopwatch::start();
        self
    }

    /// How long it has waited.
    pub(super) fn waited(&self) -> Duration {
        Duration::from_micros(self.since.now().as_micros())
    }
}

/// A place among those who watch. Dropping it gives the place back.
#[derive(Debug)]
pub(in crate::serve) struct WatchPermit(
    #[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit,
);

impl Admission {
    pub(super) fn new(limits: &Limits) -> Self {
        let requests_max = limits.queue_requests_max as usize;
        Self {
            requests: Arc::new(Semaphore::new(requests_max)),
            requests_max,
            bytes: Arc::new(Semaphore::new(limits.queue_bytes_max as usize)),
            watchers: Arc::new(Semaphore::new(limits.watchers_max as usize)),
        }
    }

    pub(super) fn enter(&self, bytes: u32) -> Result<Permit, Refusal> {
        let request = Arc::clone(&self.requests).try_acquire_owned();
        let room = Arc::clone(&self.bytes).try_acquire_many_owned(bytes);
        match (request, room) {
            (Ok(request), Ok(bytes)) => Ok(Permit {
                _room: Some([request, bytes]),
                since: Stopwatch::start(),
            }),
            _ => Err(Refusal::QueueFull),
        }
    }

    pub(super) fn enter_watch(&self) -> Result<WatchPermit, Refusal> {
        let place = Arc::clone(&self.watchers).try_acquire_owned();
        place.map(WatchPermit).map_err(|_| Refusal::TooManyWatchers)
    }

    /// Requests under way.
    pub(super) fn depth(&self) -> usize {
        self.requests_max
            .saturating_sub(self.requests.available_permits())
    }
}
