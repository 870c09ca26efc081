//! Words to the aggregator above: they leave when what they rest on is durable.

use std::{collections::VecDeque, sync::mpsc, time::Duration};

use limiter::{
    ledger::{Region, UpstreamStats},
    wire::Outgoing,
};

use super::{
    Task, TaskError,
    books::{Owner, journaled},
    work::Event,
};
use crate::{serve::upstream::Carrier, store::Position};

/// How long a service that ends waits until the aggregator above has everything.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The way up.
pub(super) struct Upward {
    carrier: Carrier,
    events: mpsc::Sender<Event>,
    /// What waits for a commit.
    held: VecDeque<(Position, Outgoing)>,
    /// When the last words have to be said, once the service ends.
    until: Option<Duration>,
    /// What was wrong last time, so that it is said once.
    wrong: Option<String>,
}

impl Upward {
    pub(super) fn new(carrier: Carrier, events: &mpsc::Sender<Event>) -> Self {
        Self {
            carrier,
            events: events.clone(),
            held: VecDeque::new(),
            until: None,
            wrong: None,
        }
    }

    fn send(&self, message: Outgoing) {
        let (events, id) = (self.events.clone(), message.id);
        self.carrier.carry(message.body, move |answer| {
            // A task that has ended has no use for it.
            let _ = events.send(Event::Upstream(id, answer));
        });
    }
}

impl Task {
    /// Joins the regions of the aggregator above.
    pub(super) fn join(&mut self, name: &str, upward: Upward) -> Result<(), TaskError> {
        let now = self.clock.now();
        let region = Region {
            name: name.to_owned(),
            epoch: now.as_micros(),
        };
        let ledger = &mut self.books.ledger;
        journaled(&mut self.log, Owner::Ledger, |records| {
            ledger.join(region, now, records);
        })?;
        self.upward = Some(upward);
        Ok(())
    }

    /// Says what there is to say.
    pub(super) fn report_upward(&mut self) -> Result<(), TaskError> {
        if self.upward.is_none() || self.commits.obstacle().is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        loop {
            let ledger = &mut self.books.ledger;
            let report = journaled(&mut self.log, Owner::Ledger, |records| {
                ledger.poll_upstream(now, records)
            })?;
            let (Some(report), Some(upward)) = (report, &mut self.upward) else {
                return Ok(());
            };
            let rests_on = self.log.last();
            if report.has_batches && rests_on > self.log.durable(self.commits.durability()) {
                upward.held.push_back((rests_on, report.message));
            } else {
                upward.send(report.message);
            }
        }
    }

    /// Lets go of what has become durable.
    pub(super) fn release_upward(&mut self) {
        let durable = self.durable();
        if let Some(upward) = &mut self.upward {
            while let Some((_, message)) = upward.held.pop_front_if(|(at, _)| *at <= durable) {
                upward.send(message);
            }
        }
    }

    /// Takes in an answer, or that there is none.
    pub(super) fn heard_upward(
        &mut self,
        id: u64,
        answer: Result<Vec<u8>, String>,
    ) -> Result<(), TaskError> {
        let now = self.clock.now();
        let revision = self.books.ledger.rules().revision;
        let ledger = &mut self.books.ledger;
        let heard = match &answer {
            Ok(body) => journaled(&mut self.log, Owner::Ledger, |records| {
                ledger
                    .handle_upstream(id, body, now, records)
                    .map_err(|error| error.to_string())
            })?,
            Err(why) => {
                ledger.upstream_unanswered(id);
                Err(why.clone())
            }
        };
        if self.books.ledger.rules().revision != revision {
            self.rules_at = self.log.last();
            self.report_serving();
        }
        self.note_upward(heard.err());
        Ok(())
    }

    fn note_upward(&mut self, wrong: Option<String>) {
        let Some(upward) = &mut self.upward else {
            return;
        };
        match (&upward.wrong, &wrong) {
            (None, Some(why)) => tracing::warn!(why, "the aggregator above does not answer"),
            (Some(_), None) => tracing::info!("the aggregator above answers again"),
            _ => {}
        }
        upward.wrong = wrong;
    }

    /// The service ends: everything is to be said soon.
    pub(super) fn begin_last_words(&mut self) {
        if let Some(upward) = &mut self.upward {
            upward.until = Some(self.clock.uptime() + LAST_WORDS);
            self.books.ledger.flush_upstream_now();
        }
    }

    /// Whether the aggregator above has everything, or is not waited for any longer.
    pub(super) fn has_said_all(&mut self) -> bool {
        let Some(upward) = &self.upward else {
            return true;
        };
        let late = upward.until.is_some_and(|at| self.clock.uptime() >= at);
        let stats = self.upstream_stats();
        late || stats.is_none_or(|stats| stats.away || stats.waiting == 0)
    }

    /// When there will be something to say, as far as is known; none if there is nobody
    /// to say it to.
    pub(super) fn upward_due(&mut self) -> Option<Duration> {
        let due = self.books.ledger.upstream_timeout()?;
        let (now, uptime) = (self.clock.now(), self.clock.uptime());
        Some(uptime + Duration::from_micros(due.since(now).get()))
    }

    pub(super) fn upstream_stats(&mut self) -> Option<UpstreamStats> {
        let now = self.clock.now();
        self.books.ledger.upstream_stats(now)
    }
}
