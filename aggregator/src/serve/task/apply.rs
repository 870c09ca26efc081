//! One request after the other, to the ledger.

use limiter::wire::{Batch, SyncReply, SyncRequest};

use super::{
    Task, TaskError,
    admission::Permit,
    books::{Owner, journaled},
    work::{Answer, Request},
};
use crate::store::Position;

/// Bytes that may wait for a commit before no more requests are applied: the
/// log's buffer always has room for the records of one more.
const UNCOMMITTED_BYTES_MAX: u64 = 16 << 20;

impl Task {
    /// Applies what was asked, as long as the log takes it.
    pub(super) fn apply_queue(&mut self) -> Result<(), TaskError> {
        while self.log.waiting_bytes() < UNCOMMITTED_BYTES_MAX
            && let Some((request, permit)) = self.queue.pop_front()
        {
            self.metrics.load.waited(permit.waited());
            match request {
                Request::Counter(request) if request.is_read() => self.counter(request, permit)?,
                request => match self.commits.obstacle() {
                    Some(why) => request.refuse(why),
                    None => self.apply(request, permit)?,
                },
            }
        }
        Ok(())
    }

    fn apply(&mut self, request: Request, permit: Permit) -> Result<(), TaskError> {
        match request {
            Request::Sync(message, answer) => self.sync(message, answer, permit),
            Request::Check(check, answer) => self.check(check, answer, permit),
            Request::Counter(request) => self.counter(request, permit),
        }
    }

    fn sync(
        &mut self,
        message: SyncRequest,
        answer: Answer<SyncReply>,
        permit: Permit,
    ) -> Result<(), TaskError> {
        let now = self.clock.now();
        let deltas = deltas(&message);
        let ledger = &mut self.books.ledger;
        let result = journaled(&mut self.log, Owner::Ledger, |records| {
            ledger.sync(message, now, records)
        })?;
        match result {
            Ok(reply) => {
                self.metrics.count_sync(&deltas, &reply);
                let rests_on = match deltas.is_empty() {
                    // What is lent is not on record, so an ask waits for no disk.
                    true => self.rules_at,
                    false => self.log.last(),
                };
                self.answer(rests_on, reply, answer, Some(permit));
            }
            Err(error) => {
                self.metrics.refused_syncs.inc();
                drop(answer.send(Err(error.into())));
            }
        }
        Ok(())
    }

    /// Answers once what the answer rests on is durable.
    pub(super) fn answer<T: Send + 'static>(
        &mut self,
        rests_on: Position,
        told: T,
        answer: Answer<T>,
        permit: Option<Permit>,
    ) {
        if self.is_durable(rests_on) {
            // Whoever asked may have gone away: then nobody is told, and it counts.
            drop(answer.send(Ok(told)));
        } else {
            self.waiting.push(rests_on, told, answer, permit);
        }
    }

    /// The last record that is as durable as was chosen.
    pub(super) fn durable(&self) -> Position {
        self.log.durable(self.commits.durability())
    }

    pub(super) fn is_durable(&self, position: Position) -> bool {
        position <= self.durable()
    }
}

/// How many counts each batch tells of.
fn deltas(message: &SyncRequest) -> Vec<u64> {
    let of_batch = |batch: &Batch| {
        batch
            .groups
            .iter()
            .map(|group| group.hits.len() as u64)
            .sum()
    };
    message.batches.iter().map(of_batch).collect()
}
