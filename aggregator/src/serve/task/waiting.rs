//! Answers that are ready but may not leave yet: what they tell is not durable.
//!
//! Invariant: an answer leaves only when every record it rests on is durable. This
//! holds for duplicates and denials, too: what they tell rests on records that a
//! crash could still take back.

use std::collections::VecDeque;

use super::{
    admission::Permit,
    work::{Answer, Refusal},
};
use crate::store::Position;

/// An answer and who gets it, whatever it is. Whoever asked may have gone away:
/// then nobody is told, and it counts.
trait Held: Send {
    fn release(self: Box<Self>);
    fn refuse(self: Box<Self>, why: Refusal);
}

impl<T: Send> Held for (T, Answer<T>) {
    fn release(self: Box<Self>) {
        drop(self.1.send(Ok(self.0)));
    }

    fn refuse(self: Box<Self>, why: Refusal) {
        drop(self.1.send(Err(why)));
    }
}

struct Waiter {
    rests_on: Position,
    held: Box<dyn Held>,
    _permit: Option<Permit>,
}

/// Answers in the order of the records they rest on.
#[derive(Default)]
pub(super) struct Waiting(VecDeque<Waiter>);

impl Waiting {
    /// Takes an answer that rests on records up to `rests_on`. It waits at least
    /// as long as those that came before it.
    pub(super) fn push<T: Send + 'static>(
        &mut self,
        rests_on: Position,
        told: T,
        answer: Answer<T>,
        permit: Option<Permit>,
    ) {
        let before = self.0.back().map_or(rests_on, |waiter| waiter.rests_on);
        self.0.push_back(Waiter {
            rests_on: rests_on.max(before),
            held: Box::new((told, answer)),
            _permit: permit,
        });
    }

    /// Lets go of every answer that rests on nothing after `durable`.
    pub(super) fn release(&mut self, durable: Position) {
        while let Some(waiter) = self.0.pop_front_if(|waiter| waiter.rests_on <= durable) {
            waiter.held.release();
        }
    }

    /// Lets nobody wait for records of which nobody knows when they will be
    /// durable. They stay in the log: a message sent again is a duplicate.
    pub(super) fn refuse(&mut self, why: &Refusal) {
        for waiter in self.0.drain(..) {
            waiter.held.refuse(why.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[test]
    fn an_answer_waits_for_every_record_before_it_and_no_later_one() {
        let mut waiting = Waiting::default();
        let mut ask = |position| {
            let (answer, answered) = oneshot::channel();
            waiting.push(Position::new(position), position, answer, None);
            answered
        };
        let (mut first, mut second) = (ask(3), ask(5));
        let mut third = ask(4);
        waiting.release(Position::new(2));
        assert!(first.try_recv().is_err());
        waiting.release(Position::new(4));
        assert_eq!(first.try_recv(), Ok(Ok(3)));
        assert!(second.try_recv().is_err() && third.try_recv().is_err());
        waiting.release(Position::new(5));
        assert_eq!(second.try_recv(), Ok(Ok(5)));
        assert_eq!(third.try_recv(), Ok(Ok(4)));
        let (answer, mut last) = oneshot::channel::<Result<u64, _>>();
        waiting.push(Position::new(6), 6, answer, None);
        waiting.refuse(&Refusal::QueueFull);
        assert_eq!(last.try_recv(), Ok(Err(Refusal::QueueFull)));
        assert!(waiting.is_empty());
    }
}
