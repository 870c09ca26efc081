//! SIGTERM and SIGINT: the first ends the service in order, the second at once.

use std::{future::Future, io, process};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The status of a process that was told twice.
const TOLD_TWICE: i32 = 1;

/// Waits for the first signal; from then on the second one ends the process.
pub(super) fn first() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        either(&mut terminate, &mut interrupt).await;
        tracing::info!("stopping; a second signal stops at once");
        tokio::spawn(async move {
            either(&mut terminate, &mut interrupt).await;
            process::exit(TOLD_TWICE);
        });
    })
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
