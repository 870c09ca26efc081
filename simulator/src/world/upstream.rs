//! What regions have to do with the aggregator above them.

use std::rc::Rc;

use super::{Event, Flight, Speaker, TICK, World};
use crate::region::Reply;

/// No region has more to say at once than this.
const SENDS_MAX: usize = 10_000;

impl World<'_> {
    /// Sends all that a region has to say to the aggregator above, and sees to its
    /// next wake-up.
    pub(super) fn climb(&mut self, region: usize) {
        if self.setup.global.is_none() || region >= self.setup.regions {
            return;
        }
        for _ in 0..SENDS_MAX {
            let Some((message, leaves_at)) = self.regions[region].poll(self.now) else {
                return self.rest(region);
            };
            let flight = Flight {
                from: Speaker::Region(region),
                id: message.id,
                body: Rc::new(message.body),
            };
            let life = self.regions[region].life;
            if leaves_at <= self.now {
                self.send(flight);
            } else {
                self.queue.push(leaves_at, Event::Depart { flight, life });
            }
        }
        let what = format!("region {region} never stops sending");
        self.checkers.violated(self.now, &what);
    }

    /// A message leaves a region, unless it has died meanwhile.
    pub(super) fn depart(&mut self, flight: Flight, life: u64) {
        if let Speaker::Region(region) = flight.from
            && self.regions[region].life == life
        {
            self.send(flight);
        }
    }

    /// A region hears what became of a message.
    pub(super) fn hear(&mut self, region: usize, id: u64, reply: Option<&Reply>) {
        if let Err(error) = self.regions[region].hear(id, reply, self.now) {
            let what = format!("region {region} refused a reply: {error}");
            self.checkers.violated(self.now, &what);
        }
        self.climb(region);
    }

    /// A region wants to be woken.
    pub(super) fn wake_region(&mut self, region: usize) {
        if self.regions[region].wake == Some(self.now) {
            self.regions[region].wake = None;
            self.climb(region);
        }
    }

    fn rest(&mut self, region: usize) {
        let Some(timeout) = self.regions[region].timeout() else {
            return;
        };
        let (now, wake) = (self.now, &mut self.regions[region].wake);
        let at = if timeout > now {
            timeout
        } else {
            now.after(TICK)
        };
        if wake.is_none_or(|wake| at < wake || wake <= now) {
            *wake = Some(at);
            self.queue.push(at, Event::Climb { region });
        }
    }
}
