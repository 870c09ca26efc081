//! What happens at the regions.

use std::rc::Rc;

use limiter::time::Micros;

use super::{Event, Flight, Speaker, World};
use crate::{plan, region::Reply};

impl World<'_> {
    /// A message reaches its region, or the aggregator above.
    pub(super) fn arrive(&mut self, flight: Flight) {
        let place = self.listener(flight.from);
        match self.regions[place].sync(&flight.body, self.now) {
            None => self.reply(&flight, None),
            Some(Err(error)) => {
                let what = format!("region {place} refused a message: {error}");
                self.checkers.violated(self.now, &what);
                self.reply(&flight, None);
            }
            Some(Ok(synced)) => {
                if let Some(ledger) = self.regions[place].ledger() {
                    let (from, now) = (flight.from, self.now);
                    self.checkers.synced(from, place, &synced, ledger, now);
                }
                self.climb(place);
                self.answer_when_durable(flight, synced.reply, synced.leaves_at);
            }
        }
    }

    /// Whom somebody's messages go to.
    fn listener(&self, from: Speaker) -> usize {
        match from {
            Speaker::Source(source) => self.sources[source].region,
            Speaker::Region(_) => self.setup.regions,
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

    /// Which life the listener of a message is in.
    fn life_of(&self, flight: &Flight) -> u64 {
        self.regions[self.listener(flight.from)].life
    }

    /// Tells whoever has sent a message what became of it.
    fn reply(&mut self, flight: &Flight, reply: Option<Rc<Reply>>) {
        let Flight { from, id, .. } = *flight;
        let arrives = match from {
            Speaker::Source(source) => self.network.reply(self.sources[source].pop, self.now),
            Speaker::Region(region) => self.upstream.reply(region, self.now),
        };
        if let Some(at) = arrives {
            self.queue.push(at, Event::Answer { from, id, reply });
        }
    }

    /// Other rules come into force: at the top, if there is one.
    pub(super) fn change(&mut self, place: usize) {
        let Some((_, rules)) = self.setup.changes.get(place) else {
            return;
        };
        let revision = 2 + place as u64;
        match plan::revised(revision, rules.clone()) {
            Ok(rules) => {
                let told = self.setup.global.map_or(0, |_| self.setup.regions);
                for region in &mut self.regions[told..] {
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
        if let Err(error) = self.regions[region].restart(self.now) {
            let what = format!("region {region} does not come back: {error}");
            return self.checkers.violated(self.now, &what);
        }
        if let Some(ledger) = self.regions[region].ledger() {
            self.checkers.restarted(region, ledger, self.now);
        }
        self.climb(region);
    }
}
