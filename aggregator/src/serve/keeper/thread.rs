//! The keeper's thread, and what it is told.

use std::{io, sync::mpsc, thread, time::Duration};

use tokio::sync::oneshot;

use super::Keeper;

/// How long a member that has handed over goes on answering those who have not seen it
/// yet: a few beats.
const LINGER: Duration = Duration::from_millis(800);

/// What the keeper is told.
enum Word {
    /// Hand over everything, and say when that is done.
    Leave(oneshot::Sender<()>),
    /// End.
    End,
}

/// The way to the keeper.
pub(in crate::serve) struct KeeperHandle(mpsc::Sender<Word>, thread::JoinHandle<()>);

impl KeeperHandle {
    /// Hands over every group, and comes back when that is done and others have seen it.
    pub(in crate::serve) async fn leave(&self) {
        let (left, done) = oneshot::channel();
        if self.0.send(Word::Leave(left)).is_ok() {
            // A keeper that is gone keeps nothing.
            let _ = done.await;
            tokio::time::sleep(LINGER).await;
        }
    }

    /// Ends it.
    pub(in crate::serve) fn end(self) {
        // One that is gone has ended; a panic in it is logged.
        let _ = self.0.send(Word::End);
        let _ = self.1.join();
    }
}

impl Keeper {
    /// Starts the thread.
    pub(in crate::serve) fn start(mut self) -> io::Result<KeeperHandle> {
        let (words, told) = mpsc::channel();
        let keep = move || {
            let mut left: Option<oneshot::Sender<()>> = None;
            loop {
                self.beat();
                if self.leaving.is_some() && self.held.is_empty() {
                    // Whoever waited may have gone away.
                    let _ = left.take().map(|left| left.send(()));
                }
                match told.recv_timeout(self.pause()) {
                    Ok(Word::Leave(done)) => {
                        left = Some(done);
                        self.leave();
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Ok(Word::End) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
            }
            self.farewell();
        };
        let thread = thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(keep)?;
        Ok(KeeperHandle(words, thread))
    }
}
