//! The last words to a connection whose request is not read.
//!
//! Closing with bytes unread makes the system reset the connection, and the answer
//! may be lost with it. So what has come is read and forgotten, for a little while,
//! and of so many connections at once that it cannot be used to hold them open.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    time::timeout,
};

/// Connections that are told at once; the others just end.
const TOLD_MAX: usize = 64;

/// How long one of them may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most that is read of one, in bytes.
const READ_MAX: u64 = 64 << 10;

/// Tells connections why they end. Cheap to clone.
#[derive(Clone)]
pub(super) struct Farewell(Arc<Semaphore>);

impl Farewell {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(TOLD_MAX)))
    }

    /// Sends the answer and closes, without making anybody wait.
    pub(super) fn say(&self, answer: &'static [u8], stream: TcpStream) {
        if let Ok(place) = Arc::clone(&self.0).try_acquire_owned() {
            tokio::spawn(async move {
                // Best effort: nobody is owed an answer here.
                let _ = timeout(PATIENCE, tell(answer, stream)).await;
                drop(place);
            });
        }
    }
}

async fn tell(answer: &[u8], mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(answer).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(READ_MAX);
    let mut forgotten = [0; 1024];
    while rest.read(&mut forgotten).await? > 0 {}
    Ok(())
}
