//! Answers that are ready but may not leave yet: what they tell is not durable.
//!
//! Invariant: an answer leaves only when every record appended before it is
//! durable. This holds for duplicates and denials, too: what they tell rests
//! on records that a crash could still take back.

use std::collections::VecDeque;

use limiter::wire::SyncReply;

use super::{
    admission::Permit,
    work::{Answer, Checked, Refusal},
};
use crate::store::Position;

/// An answer, and who gets it.
pub(super) enum Outcome {
    Sync(SyncReply, Answer<SyncReply>),
    Check(Checked, Answer<Checked>),
    Rules(u64, Answer<u64>),
}

impl Outcome {
    /// Whoever asked may have gone away: then nobody is told, and it counts.
    pub(super) fn release(self) {
        match self {
            Self::Sync(reply, answer) => drop(answer.send(Ok(reply))),
            Self::Check(checked, answer) => drop(answer.send(Ok(checked))),
            Self::Rules(revision, answer) => drop(answer.send(Ok(revision))),
        }
    }

    fn refuse(self, why: Refusal) {
        match self {
            Self::Sync(_, answer) => drop(answer.send(Err(why))),
            Self::Check(_, answer) => drop(answer.send(Err(why))),
            Self::Rules(_, answer) => drop(answer.send(Err(why))),
        }
    }
}

struct Waiter {
    rests_on: Position,
    outcome: Outcome,
    _permit: Option<Permit>,
}

/// Answers in the order of the records they rest on.
#[derive(Default)]
pub(super) struct Waiting(VecDeque<Waiter>);

impl Waiting {
    /// Takes an answer that rests on every record up to `rests_on`, which is
    /// not before that of the answer taken last.
    pub(super) fn push(&mut self, rests_on: Position, outcome: Outcome, permit: Option<Permit>) {
        self.0.push_back(Waiter {
            rests_on,
            outcome,
            _permit: permit,
        });
    }

    /// Lets go of every answer that rests on nothing after `durable`.
    pub(super) fn release(&mut self, durable: Position) {
        while let Some(waiter) = self.0.pop_front_if(|waiter| waiter.rests_on <= durable) {
            waiter.outcome.release();
        }
    }

    /// Lets nobody wait for records of which nobody knows when they will be
    /// durable. They stay in the log: a message sent again is a duplicate.
    pub(super) fn refuse(&mut self, why: &Refusal) {
        for waiter in self.0.drain(..) {
            waiter.outcome.refuse(why.clone());
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
            let outcome = Outcome::Rules(position, answer);
            waiting.push(Position::new(position), outcome, None);
            answered
        };
        let (mut first, mut second) = (ask(3), ask(5));
        waiting.release(Position::new(2));
        assert!(first.try_recv().is_err());
        waiting.release(Position::new(4));
        assert_eq!(first.try_recv(), Ok(Ok(3)));
        assert!(second.try_recv().is_err());
        waiting.refuse(&Refusal::QueueFull);
        assert_eq!(second.try_recv(), Ok(Err(Refusal::QueueFull)));
        assert!(waiting.is_empty());
    }
}
