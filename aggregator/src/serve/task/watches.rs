//! Counters that somebody watches: who is told of a change, and when.
//!
//! A change is told once its record is durable. Of changes that come faster than
//! that, or than a reader takes them, only the latest is told: a reader that is
//! slow costs nobody else, and a hot counter is never told too late. For each
//! counter two changes are kept at most: the one that is told next, so that
//! it comes to be told, and the latest after it.

use std::collections::HashMap;

use limiter::{
    counter::{Counter, CounterId},
    time::Timestamp,
};
use tokio::sync::watch;

use crate::store::Position;

/// What a counter came to be; none: never written.
type State = Option<Counter>;

/// All that is watched.
#[derive(Default)]
pub(super) struct Watches {
    watched: HashMap<CounterId, Watched>,
    closed: bool,
}

struct Watched {
    told: watch::Sender<State>,
    /// As of the last record.
    latest: State,
    next: Option<(Position, State)>,
    after: Option<(Position, State)>,
}

impl Watches {
    /// A way to hear of changes to a counter that is now as `current`. It ends at
    /// once if the watches have ended.
    pub(super) fn subscribe(&mut self, id: CounterId, current: State) -> watch::Receiver<State> {
        if self.closed {
            return watch::channel(current).1;
        }
        let watched = self.watched.entry(id).or_insert_with(|| Watched {
            told: watch::channel(current).0,
            latest: current,
            next: None,
            after: None,
        });
        watched.told.subscribe()
    }

    /// Whether nobody watches anything.
    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Takes note of a change that rests on a record.
    pub(super) fn note(&mut self, id: &CounterId, state: State, rests_on: Position) {
        if let Some(watched) = self.watched.get_mut(id) {
            watched.note(state, rests_on);
        }
    }

    /// Tells every change that is durable, and forgets counters that nobody
    /// watches any more.
    pub(super) fn release(&mut self, durable: Position) {
        self.watched.retain(|_, watched| {
            watched.release(durable);
            watched.told.receiver_count() > 0
        });
    }

    /// Takes note of counters that have ended: no record says so.
    pub(super) fn note_ended(&mut self, now: Timestamp, last: Position) {
        for watched in self.watched.values_mut() {
            let ends = watched.latest.and_then(|counter| counter.expires);
            if ends.is_some_and(|end| end <= now) {
                watched.note(None, last);
            }
        }
    }

    /// Ends all of them.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.watched.clear();
    }
}

impl Watched {
    fn note(&mut self, state: State, rests_on: Position) {
        self.latest = state;
        let change = Some((rests_on, state));
        match self.next {
            None => self.next = change,
            Some(_) => self.after = change,
        }
    }

    fn release(&mut self, durable: Position) {
        while let Some((_, state)) = self.next.take_if(|(rests_on, _)| *rests_on <= durable) {
            self.told.send_replace(state);
            self.next = self.after.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> CounterId {
        CounterId::new("t", "n", "c").unwrap()
    }

    fn value(value: i64) -> State {
        let expires = Some(Timestamp::from_millis(1_000));
        Some(Counter { value, expires })
    }

    fn at(position: u64) -> Position {
        Position::new(position)
    }

    #[test]
    fn a_change_is_told_when_it_is_durable_and_not_before() {
        let mut watches = Watches::default();
        let mut told = watches.subscribe(id(), value(1));
        watches.note(&id(), value(2), at(5));
        watches.release(at(4));
        assert!(!told.has_changed().unwrap());
        watches.release(at(5));
        assert_eq!(*told.borrow_and_update(), value(2));
    }

    #[test]
    fn a_counter_that_changes_faster_than_the_disk_is_told_of_all_the_same() {
        let mut watches = Watches::default();
        let mut told = watches.subscribe(id(), value(0));
        for n in 1..100 {
            watches.note(&id(), value(n), at(n.unsigned_abs()));
            if n == 50 {
                watches.release(at(10));
                assert_eq!(*told.borrow_and_update(), value(1));
            }
        }
        watches.release(at(99));
        assert_eq!(*told.borrow_and_update(), value(99));
    }

    #[test]
    fn a_counter_that_ends_is_told_of_although_no_record_says_so() {
        let mut watches = Watches::default();
        let mut told = watches.subscribe(id(), value(1));
        watches.note_ended(Timestamp::from_millis(999), at(1));
        watches.release(at(1));
        assert!(!told.has_changed().unwrap());
        watches.note_ended(Timestamp::from_millis(1_000), at(1));
        watches.release(at(1));
        assert_eq!(*told.borrow_and_update(), None);
    }

    #[test]
    fn what_nobody_watches_is_forgotten_and_what_is_closed_ends() {
        let mut watches = Watches::default();
        drop(watches.subscribe(id(), None));
        watches.release(at(1));
        assert!(watches.is_empty());
        let told = watches.subscribe(id(), None);
        watches.close();
        assert!(told.has_changed().is_err());
        assert!(watches.subscribe(id(), None).has_changed().is_err());
    }
}
