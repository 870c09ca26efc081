//! Ctrl-C: a flag that is looked at between two steps, so that whatever was
//! started is ended by its handle and not left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Somebody wants it to end now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted;

/// Whether somebody does.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts(Arc<AtomicBool>);

/// Takes note of SIGINT, SIGTERM and SIGHUP from now on.
pub(crate) fn listen() -> Interrupts {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without it the signal ends the process as it always did.
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    Interrupts(flag)
}

impl Interrupts {
    /// Goes on unless there was one.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Interrupted);
        }
        Ok(())
    }
}
