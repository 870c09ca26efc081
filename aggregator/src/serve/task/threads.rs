//! The threads that wait for the disk in the task's place.

use std::{io, sync::mpsc, thread};

use super::work::Event;

/// Tells the task when its thread panics: nobody may wait for it for ever.
struct Watched {
    events: mpsc::Sender<Event>,
    name: &'static str,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if thread::panicking() {
            // A task that has ended has no use for it.
            let _ = self.events.send(Event::Gone(self.name));
        }
    }
}

/// Starts a thread that reports to the task.
pub(super) fn spawn(
    name: &'static str,
    events: &mpsc::Sender<Event>,
    work: impl FnOnce(&mpsc::Sender<Event>) + Send + 'static,
) -> io::Result<()> {
    let watched = Watched {
        events: events.clone(),
        name,
    };
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(move || work(&watched.events)).map(drop)
}
