//! Counters: what is asked of them, and what is told when.

use limiter::counter::{Add, AddError, Added, Counter, CounterId, Seen};
use tokio::sync::watch;

use super::{
    Task, TaskError,
    admission::Permit,
    books::{Owner, journaled},
    work::{Answer, Refusal},
};
use crate::store::Position;

/// What is asked of counters.
pub(super) enum CounterRequest {
    /// Each is answered by itself, in order.
    Add(Vec<Add>, Answer<Vec<Result<Added, AddError>>>),
    Read(CounterId, Answer<Option<Counter>>),
    Reset(CounterId, Answer<Counter>),
    /// Answers with what it was.
    Delete(CounterId, Answer<Option<Counter>>),
    Watch(CounterId, Answer<Watching>),
}

/// A counter as it is, and as it comes to be.
pub(in crate::serve) struct Watching {
    pub(in crate::serve) current: Option<Counter>,
    /// The latest change that is durable.
    pub(in crate::serve) changes: watch::Receiver<Option<Counter>>,
}

impl CounterRequest {
    /// Whether it changes nothing.
    pub(super) const fn is_read(&self) -> bool {
        matches!(self, Self::Read(..) | Self::Watch(..))
    }

    pub(super) fn refuse(self, why: Refusal) {
        match self {
            Self::Add(_, answer) => drop(answer.send(Err(why))),
            Self::Read(_, answer) | Self::Delete(_, answer) => drop(answer.send(Err(why))),
            Self::Reset(_, answer) => drop(answer.send(Err(why))),
            Self::Watch(_, answer) => drop(answer.send(Err(why))),
        }
    }
}

impl Task {
    pub(super) fn counter(
        &mut self,
        request: CounterRequest,
        permit: Permit,
    ) -> Result<(), TaskError> {
        match request {
            CounterRequest::Add(adds, answer) => self.add(&adds, answer, permit),
            CounterRequest::Reset(id, answer) => self.reset(&id, answer, permit),
            CounterRequest::Delete(id, answer) => self.delete(&id, answer, permit),
            CounterRequest::Read(id, answer) => {
                let seen = self.see(&id);
                self.answer_read(seen, seen.counter, answer, permit);
                Ok(())
            }
            CounterRequest::Watch(id, answer) => {
                let seen = self.see(&id);
                let current = seen.counter;
                let changes = self.watches.subscribe(id, current);
                let watching = Watching { current, changes };
                self.answer_read(seen, watching, answer, permit);
                Ok(())
            }
        }
    }

    fn see(&mut self, id: &CounterId) -> Seen {
        self.books.counters.read(id, self.clock.now())
    }

    /// Answers who changes nothing: at once, if what there is to tell is durable.
    /// With the disk full nobody waits for it to become so.
    fn answer_read<T: Send + 'static>(
        &mut self,
        seen: Seen,
        told: T,
        answer: Answer<T>,
        permit: Permit,
    ) {
        let rests_on = Position::new(seen.rests_on);
        match self.commits.obstacle() {
            Some(why) if !self.is_durable(rests_on) => drop(answer.send(Err(why))),
            _ => self.answer(rests_on, told, answer, Some(permit)),
        }
    }

    fn add(
        &mut self,
        adds: &[Add],
        answer: Answer<Vec<Result<Added, AddError>>>,
        permit: Permit,
    ) -> Result<(), TaskError> {
        let now = self.clock.now();
        let counters = &mut self.books.counters;
        let results: Vec<_> = journaled(&mut self.log, Owner::Counters, |records| {
            let add = |add| counters.add(add, now, records);
            adds.iter().map(add).collect()
        })?;
        let mut rests_on = Position::START;
        for (add, result) in adds.iter().zip(&results) {
            self.metrics.count_add(result);
            rests_on = rests_on.max(match result {
                Ok(added) => Position::new(added.rests_on),
                Err(_) => self.log.last(),
            });
            if let Ok(added) = result {
                self.note_change(&add.id, Position::new(added.rests_on));
            }
        }
        self.answer(rests_on, results, answer, Some(permit));
        Ok(())
    }

    fn reset(
        &mut self,
        id: &CounterId,
        answer: Answer<Counter>,
        permit: Permit,
    ) -> Result<(), TaskError> {
        let now = self.clock.now();
        let counters = &mut self.books.counters;
        let reset = journaled(&mut self.log, Owner::Counters, |records| {
            counters.reset(id, now, records)
        })?;
        match reset {
            Ok((counter, rests_on)) => {
                let rests_on = Position::new(rests_on);
                self.note_change(id, rests_on);
                self.answer(rests_on, counter, answer, Some(permit));
            }
            Err(error) => drop(answer.send(Err(error.into()))),
        }
        Ok(())
    }

    fn delete(
        &mut self,
        id: &CounterId,
        answer: Answer<Option<Counter>>,
        permit: Permit,
    ) -> Result<(), TaskError> {
        let now = self.clock.now();
        let counters = &mut self.books.counters;
        let seen = journaled(&mut self.log, Owner::Counters, |records| {
            counters.delete(id, now, records)
        })?;
        let rests_on = Position::new(seen.rests_on);
        self.note_change(id, rests_on);
        self.answer(rests_on, seen.counter, answer, Some(permit));
        Ok(())
    }

    /// Tells those who watch a counter what it has become, once that is durable.
    fn note_change(&mut self, id: &CounterId, rests_on: Position) {
        if !self.watches.is_empty() {
            let now = self.clock.now();
            let state = self.books.counters.read(id, now).counter;
            self.watches.note(id, state, rests_on);
        }
    }

    /// Tells those who watch what has become durable, and what has ended.
    pub(super) fn tell_watchers(&mut self) {
        if !self.watches.is_empty() {
            let now = self.clock.now();
            self.watches.note_ended(now, self.log.last());
            self.watches.release(self.durable());
        }
    }
}
