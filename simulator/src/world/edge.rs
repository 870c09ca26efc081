//! What happens at the sources.

use std::rc::Rc;

use limiter::{decision::Verdict, time::Micros};

use super::{Event, Flight, Responding, Speaker, World};
use crate::{
    arrivals::Arrival,
    checkers::Who,
    region::Reply,
    response::Response,
    source::{Held, held_until},
};

/// How long after the last request responses still come: what they change has to get
/// through before the accounts are drawn up.
const LINGER: Micros = Micros::from_secs(10);

/// No source has more to send at once than this.
const SENDS_MAX: usize = 10_000;

impl World<'_> {
    /// A request arrives at a source.
    pub(super) fn request(&mut self, arrival: Arrival) {
        let query = self.plan.query(arrival.key);
        let region = self.sources[arrival.source].region;
        let manner = self.setup.responses;
        let response = manner.map(|manner| manner.answer(&mut self.responses, self.now));
        let admitted = self.exact.decide(&query, region, self.now);
        self.accuracy.exact(region, arrival.key, admitted);
        if let Some(response) = response.filter(|_| admitted) {
            let (key, at) = (arrival.key, self.now);
            let event = Event::RespondExactly {
                region,
                key,
                at,
                response,
            };
            self.queue.push(response.at, event);
        }
        self.checkers.tally.requests += 1;
        let source = &mut self.sources[arrival.source];
        let local = source.local(self.now);
        let verdict = source.limiter.decide(&query, local);
        if let Some(until) = held_until(&verdict) {
            self.checkers.tally.held += 1;
            let until = source.truly(until);
            let held = source.hold(arrival.key, response, until);
            self.wait(arrival.source, &held);
        } else {
            self.conclude(arrival.source, arrival.key, response, &verdict);
        }
        self.drain(arrival.source);
    }

    /// A source wants to be woken.
    pub(super) fn wake(&mut self, place: usize) {
        let source = &mut self.sources[place];
        if source.wake == Some(self.now) {
            source.wake = None;
            self.drain(place);
        }
    }

    /// A source dies, and what it held back with it, and is born again.
    pub(super) fn rebirth(&mut self, place: usize) {
        let source = &mut self.sources[place];
        let rules = source.limiter.take_rule_stats();
        let stats = source.limiter.stats(source.local(self.now));
        self.checkers.tally.report(&rules, &stats);
        source.rebirth(self.now, self.setup, self.plan);
        self.drain(place);
    }

    /// A held request's patience ends.
    pub(super) fn give_up(&mut self, place: usize, ticket: u64) {
        let source = &mut self.sources[place];
        let Some(held) = source.give_up(ticket, self.now) else {
            return;
        };
        let query = self.plan.query(held.key);
        let local = source.local(self.now);
        let verdict = source.limiter.decide_held(&query, local, true);
        self.conclude(place, held.key, held.response, &verdict);
        self.drain(place);
    }

    /// A source hears what became of a message.
    pub(super) fn answer(&mut self, place: usize, id: u64, reply: Option<&Reply>) {
        let source = &mut self.sources[place];
        if !source.done(id) {
            return;
        }
        let local = source.local(self.now);
        let Some(reply) = reply else {
            source.limiter.handle_no_answer(id, local);
            return self.decide_anew(place);
        };
        self.checkers.answered(place, reply);
        if let Err(error) = source.limiter.handle_reply(id, &reply.body, local) {
            let what = format!("source {place} refused a reply: {error}");
            self.checkers.violated(self.now, &what);
        }
        self.decide_anew(place);
    }

    /// Decides all that a source holds back, in the order they came.
    fn decide_anew(&mut self, place: usize) {
        for held in std::mem::take(&mut self.sources[place].held) {
            self.decide_held(place, held);
        }
        self.drain(place);
    }

    fn decide_held(&mut self, place: usize, held: Held) {
        let source = &mut self.sources[place];
        let query = self.plan.query(held.key);
        let local = source.local(self.now);
        let verdict = source.limiter.decide_held(&query, local, false);
        if held_until(&verdict).is_some() {
            // It is still to be given up when it was first told.
            source.held.push(held);
        } else {
            self.conclude(place, held.key, held.response, &verdict);
        }
    }

    /// A request is answered.
    fn conclude(
        &mut self,
        place: usize,
        key: usize,
        response: Option<Response>,
        verdict: &Verdict,
    ) {
        let query = &self.plan.query(key);
        let source = &self.sources[place];
        let local = source.local(self.now);
        if matches!(verdict, Verdict::Allow(_) | Verdict::Pass) {
            self.accuracy.admitted(source.region, key);
        }
        let who = Who {
            source: place,
            region: source.region,
        };
        self.checkers.verdict(who, query, verdict, self.now, local);
        let Some(response) = response.filter(|_| matches!(verdict, Verdict::Allow(_))) else {
            return;
        };
        let open = source.limiter.open(query, local);
        self.checkers.opened(query, open.as_ref());
        let in_time = response.at <= self.setup.end().after(LINGER);
        if let Some(open) = open.filter(|_| in_time) {
            let (source, life, at) = (place, source.life, self.now);
            let responding = Responding {
                source,
                life,
                key,
                at,
                open,
                response,
            };
            let event = Event::Respond(Box::new(responding));
            self.queue.push(response.at.max(self.now), event);
        }
    }

    /// The response to a request that a source has admitted. One that has died
    /// meanwhile has taken the request with it.
    pub(super) fn respond(&mut self, responding: &Responding) {
        let source = &mut self.sources[responding.source];
        if source.life != responding.life {
            return;
        }
        let local = source.local(self.now);
        source
            .limiter
            .close(&responding.open, &responding.response, local);
        let query = self.plan.query(responding.key);
        let region = source.region;
        self.checkers
            .responded(&query, region, responding, self.now);
        self.drain(responding.source);
    }

    fn wait(&mut self, source: usize, held: &Held) {
        let at = held.until.max(self.now);
        let ticket = held.ticket;
        self.queue.push(at, Event::GiveUp { source, ticket });
    }

    /// Sends all that a source has to send, and sees to its next wake-up.
    pub(super) fn drain(&mut self, place: usize) {
        for _ in 0..SENDS_MAX {
            let source = &mut self.sources[place];
            let local = source.local(self.now);
            let Some(outgoing) = source.limiter.poll_send(local) else {
                return self.sleep(place);
            };
            source.sent(outgoing.id);
            self.checkers.sent(place, &outgoing.body, self.now);
            self.send(Flight {
                from: Speaker::Source(place),
                id: outgoing.id,
                body: Rc::new(outgoing.body),
            });
        }
        let what = format!("source {place} never stops sending");
        self.checkers.violated(self.now, &what);
    }

    /// Puts a message on its way.
    pub(super) fn send(&mut self, flight: Flight) {
        let Flight { from, id, .. } = flight;
        let (network, place) = match from {
            Speaker::Source(source) => (&mut self.network, self.sources[source].pop),
            Speaker::Region(region) => (&mut self.upstream, region),
        };
        let lost = Event::Answer {
            from,
            id,
            reply: None,
        };
        self.queue.push_last(network.deadline(self.now), lost);
        for at in network.request(place, self.now).into_iter().flatten() {
            self.queue.push(at, Event::Arrive(flight.clone()));
        }
    }

    fn sleep(&mut self, place: usize) {
        let source = &mut self.sources[place];
        let Some(timeout) = source.timeout() else {
            return;
        };
        let soonest = self.now.after(super::TICK);
        let at = if timeout > self.now { timeout } else { soonest };
        if source.wake.is_none_or(|wake| at < wake || wake <= self.now) {
            source.wake = Some(at);
            self.queue.push(at, Event::Wake { source: place });
        }
    }
}
