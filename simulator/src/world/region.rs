//! What happens at the regions.

use std::rc::Rc;

use limiter::time::Micros;

use super::{Event, Flight, World};
use crate::{checkers::Who, plan, region::Reply};

impl World<'_> {
    /// A message reaches its region.
    pub(super) fn arrive(&mut self, flight: Flight) {
        let (source, place) = (flight.source, self.sources[flight.source].region);
        match self.regions[place].sync(&flight.body, self.now) {
            None => self.reply(&flight, None),
            Some(Err(error)) => {
                let what = format!("the region refused a message: {error}");
                self.checkers.violated(self.now, &what);
                self.reply(&flight, None);
            }
            Some(Ok(synced)) => {
                if let Some(ledger) = self.regions[place].ledger() {
                    let region = place;
                    let who = Who { source, region };
                    self.checkers.synced(who, &synced, ledger, self.now);
                }
                self.answer_when_durable(flight, synced.reply, synced.leaves_at);
            }
        }
    }

    fn answer_when_durable(
        &mut self,
        flight: Flight,
        reply: Rc<Reply>,
        leaves_at: limiter::time::Timestamp,
    ) {
        let life = self.life_of(&flight);
        if leaves_at <= self.now {
            return self.durable(&flight, reply, life);
        }
        let event = Event::Durable {
            flight,
            reply,
            life,
        };
        self.queue.push(leaves_at, event);
    }

    /// What a reply speaks of is durable: it leaves, unless the region has died
    /// meanwhile, and the connection with it.
    pub(super) fn durable(&mut self, flight: &Flight, reply: Rc<Reply>, life: u64) {
        let alive = life == self.life_of(flight);
        self.reply(flight, alive.then_some(reply));
    }

    /// Which life the region of a message is in.
    fn life_of(&self, flight: &Flight) -> u64 {
        self.regions[self.sources[flight.source].region].life
    }

    /// Tells a source what became of its message.
    fn reply(&mut self, flight: &Flight, reply: Option<Rc<Reply>>) {
        let Flight { source, id, .. } = *flight;
        let pop = self.sources[source].pop;
        if let Some(at) = self.network.reply(pop, self.now) {
            self.queue.push(at, Event::Answer { source, id, reply });
        }
    }

    /// Other rules come into force.
    pub(super) fn change(&mut self, place: usize) {
        let Some((_, rules)) = self.setup.changes.get(place) else {
            return;
        };
        let revision = 2 + place as u64;
        match plan::revised(revision, rules.clone()) {
            Ok(rules) => {
                for region in &mut self.regions {
                    region.set_rules(rules.clone(), self.now);
                }
            }
            Err(error) => self.checkers.violated(self.now, &error),
        }
    }

    /// A region dies.
    pub(super) fn crash(&mut self, region: usize, down: Micros) {
        self.regions[region].crash(self.now);
        self.checkers.crashed(region, self.now);
        self.queue
            .push(self.now.after(down), Event::Restart { region });
    }

    /// A region comes back.
    pub(super) fn restart(&mut self, region: usize) {
        if let Err(error) = self.regions[region].restart() {
            let what = format!("region {region} does not come back: {error}");
            return self.checkers.violated(self.now, &what);
        }
        if let Some(ledger) = self.regions[region].ledger() {
            self.checkers.restarted(region, ledger, self.now);
        }
    }
}
