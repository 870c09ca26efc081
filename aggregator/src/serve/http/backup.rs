//! `GET /v1/backup`: everything on record, as a tar, while the service runs.
//!
//! It holds every answer that left before it was asked for. Files are read on
//! threads that may wait, so that no other request does.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use http_body_util::channel::{Channel, Sender};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

use super::{App, problem::Problem};
use crate::{
    chain::chain,
    serve::health::Health,
    store::{Backup, Disk, Room},
};

/// What is sent at once.
const PIECE_BYTES: usize = 256 << 10;

/// How long a disk may think about what room it has.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);

/// Pieces that wait for a slow reader.
const PIECES_MAX: usize = 4;

/// Where everything is kept, to be read.
#[derive(Clone)]
pub(in crate::serve) struct DataDir {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// One backup at a time: more would only be slower.
    place: Arc<Semaphore>,
}

impl DataDir {
    pub(in crate::serve) fn new(disk: Arc<dyn Disk>, dir: &Path) -> Self {
        Self {
            disk,
            dir: dir.to_owned(),
            place: Arc::new(Semaphore::new(1)),
        }
    }

    /// What room the disk has, if it says so at once.
    pub(super) async fn room(&self) -> Option<Room> {
        let data = self.clone();
        let asked = spawn_blocking(move || data.disk.room(&data.dir).ok());
        timeout(ROOM_TIMEOUT, asked).await.ok()?.ok()?
    }
}

pub(super) async fn backup(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if app.ledger.health() == Health::Recovering {
        return Err(Problem::unready("the log is being read"));
    }
    let Some(data) = app.data.clone() else {
        let detail = "what this service keeps is in a shared store: back that up by its own means";
        return Err(Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            "shared-store",
            "There is nothing here to back up",
            detail,
        ));
    };
    let place = data.place.try_acquire_owned().map_err(|_| busy())?;
    let opened = spawn_blocking(move || Backup::of(data.disk, &data.dir)).await;
    let backup = match opened {
        Ok(Ok(backup)) => backup,
        Ok(Err(error)) => return Err(failed(chain(&error))),
        Err(error) => return Err(failed(error.to_string())),
    };
    let bytes = backup.bytes();
    let (sender, body) = Channel::new(PIECES_MAX);
    let runtime = Handle::current();
    spawn_blocking(move || send(backup, sender, runtime, place));
    let head = [
        (header::CONTENT_TYPE, "application/x-tar".to_owned()),
        (header::CONTENT_LENGTH, bytes.to_string()),
    ];
    Ok((head, Body::new(body)).into_response())
}

fn send(
    backup: Backup,
    sender: Sender<Bytes, io::Error>,
    runtime: Handle,
    _place: OwnedSemaphorePermit,
) {
    let pieces = BufWriter::with_capacity(PIECE_BYTES, Pieces { sender, runtime });
    // The length was announced: a body that ends early is seen to be short.
    match backup.write(pieces).and_then(|mut pieces| pieces.flush()) {
        Ok(()) => tracing::info!("a backup was taken"),
        Err(error) => tracing::warn!(error = chain(&error), "a backup broke off"),
    }
}

/// Sends what is written, piece by piece.
struct Pieces {
    sender: Sender<Bytes, io::Error>,
    runtime: Handle,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let sent = self.runtime.block_on(self.sender.send_data(piece));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the client has gone"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn busy() -> Problem {
    Problem::unready("another backup is under way")
}

fn failed(detail: String) -> Problem {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Problem::new(status, "backup", "The backup could not be taken", detail)
}
