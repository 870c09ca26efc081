//! The run itself: what happens next, until nothing does.
//!
//! The clock jumps from one event to the next. Requests come from their own
//! iterator, everything else from the queue.

use std::{iter::Peekable, rc::Rc};

use limiter::{
    edge::Open,
    key::PARTITIONS,
    ledger::Ledger,
    time::{Micros, Timestamp},
};

use crate::{
    accuracy::Accuracy,
    arrivals::Arrival,
    chance::{Chance, Purpose},
    checkers::Checkers,
    exact::Exact,
    network::Network,
    plan::Plan,
    queue::Queue,
    region::{Region, Reply},
    response::Response,
    setup::Setup,
    source::Source,
};

mod edge;
mod finish;
mod region;
mod upstream;

pub(crate) use finish::Run;

/// Time from one partition of the regions being swept to the next.
const SWEEP: Micros = Micros::from_secs(1);

/// How soon a source is woken again that wants to be woken at once.
const TICK: Micros = Micros::from_millis(1);

/// How long a fleet has after the last request to get all it counted through.
const SETTLE: Micros = Micros::from_secs(30);

/// A fleet, its regions, and all that is on its way.
pub(crate) struct World<'a> {
    setup: &'a Setup,
    plan: &'a Plan,
    now: Timestamp,
    queue: Queue<Event>,
    sources: Vec<Source>,
    /// And behind the last of them the aggregator above, if there is one.
    regions: Vec<Region>,
    network: Network,
    upstream: Network,
    exact: Exact,
    accuracy: Accuracy,
    checkers: Checkers,
    responses: Chance,
}

/// What can happen, other than a request.
enum Event {
    /// A source wants to be woken.
    Wake { source: usize },
    /// A held request's patience ends.
    GiveUp { source: usize, ticket: u64 },
    /// A message reaches its region.
    Arrive(Flight),
    /// What a reply speaks of is durable.
    Durable {
        flight: Flight,
        reply: Rc<Reply>,
        life: u64,
    },
    /// Whoever has sent a message hears what became of it: a reply, or that there is
    /// none.
    Answer {
        from: Speaker,
        id: u64,
        reply: Option<Rc<Reply>>,
    },
    /// A region wants to be woken, for what it has to say to the aggregator above.
    Climb { region: usize },
    /// A message of a region leaves it: all that it tells of is durable.
    Depart { flight: Flight, life: u64 },
    /// A region dies, and comes back so much later.
    Crash { region: usize, down: Micros },
    /// A region comes back.
    Restart { region: usize },
    /// The regions tidy up.
    Sweep { partition: u32 },
    /// Other rules come into force.
    Change { place: usize },
    /// A source dies, with all that it has not said, and is born again.
    Rebirth { source: usize },
    /// The regions write themselves down.
    Snapshot { every: Micros },
    /// The response to a request that a source has admitted.
    Respond(Box<Responding>),
    /// The same, to a request that one central limiter has.
    RespondExactly {
        region: usize,
        key: usize,
        at: Timestamp,
        response: Response,
    },
}

/// A response on its way.
pub(crate) struct Responding {
    source: usize,
    life: u64,
    key: usize,
    /// When its request was admitted.
    pub(crate) at: Timestamp,
    pub(crate) open: Open,
    pub(crate) response: Response,
}

/// Who sends messages: sources to their regions, and regions to the aggregator above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Source(usize),
    Region(usize),
}

/// A message on its way.
#[derive(Clone)]
struct Flight {
    from: Speaker,
    id: u64,
    body: Rc<Vec<u8>>,
}

impl<'a> World<'a> {
    /// Everything in place, and nothing happened yet.
    pub(crate) fn new(setup: &'a Setup, plan: &'a Plan) -> Self {
        let mut chance = Chance::new(setup.seed, Purpose::Identity);
        let sources = 0..setup.sources();
        let mut world = Self {
            now: setup.start,
            queue: Queue::new(),
            sources: sources
                .map(|place| Source::new(place, setup, plan, &mut chance))
                .collect(),
            regions: (0..setup.ledgers())
                .map(|place| Region::new(place, setup, &plan.rules))
                .collect(),
            network: Network::new(setup),
            upstream: Network::upstream(setup),
            exact: Exact::new(setup.regions),
            accuracy: Accuracy::new(setup, plan),
            checkers: Checkers::new(setup),
            responses: Chance::new(setup.seed, Purpose::Responses),
            setup,
            plan,
        };
        world.wake_all();
        (0..setup.regions).for_each(|region| world.climb(region));
        world.schedule();
        world
    }

    /// Hosts poll their sources as soon as they have made them.
    fn wake_all(&mut self) {
        for source in 0..self.sources.len() {
            let at = self.setup.start;
            self.sources[source].wake = Some(at);
            self.queue.push(at, Event::Wake { source });
        }
    }

    fn schedule(&mut self) {
        let start = self.setup.start;
        for restart in &self.setup.restarts {
            let (region, down) = (restart.region, restart.down);
            self.queue.push(restart.at, Event::Crash { region, down });
        }
        for (place, (at, _)) in self.setup.changes.iter().enumerate() {
            self.queue.push(*at, Event::Change { place });
        }
        for (at, source) in &self.setup.rebirths {
            self.queue.push(*at, Event::Rebirth { source: *source });
        }
        if let Some(every) = self.setup.snapshots {
            self.queue
                .push(start.after(every), Event::Snapshot { every });
        }
        self.queue
            .push(start.after(SWEEP), Event::Sweep { partition: 0 });
    }

    /// Lets everything happen that the arrivals lead to.
    pub(crate) fn run(mut self, arrivals: impl Iterator<Item = Arrival>) -> Run {
        let mut arrivals = arrivals.peekable();
        while arrivals.peek().is_some() {
            self.step(&mut arrivals);
        }
        self.finish()
    }

    fn step(&mut self, arrivals: &mut Peekable<impl Iterator<Item = Arrival>>) {
        let next = self.queue.next_at();
        let first = |arrival: &Arrival| next.is_none_or(|next| arrival.at < next);
        if let Some(arrival) = arrivals.next_if(first) {
            self.now = arrival.at;
            self.request(arrival);
        } else if let Some((at, event)) = self.queue.pop() {
            self.now = at;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake { source } => self.wake(source),
            Event::GiveUp { source, ticket } => self.give_up(source, ticket),
            Event::Arrive(flight) => self.arrive(flight),
            Event::Durable {
                flight,
                reply,
                life,
            } => self.durable(&flight, reply, life),
            Event::Answer { from, id, reply } => match from {
                Speaker::Source(source) => self.answer(source, id, reply.as_deref()),
                Speaker::Region(region) => self.hear(region, id, reply.as_deref()),
            },
            Event::Climb { region } => self.wake_region(region),
            Event::Depart { flight, life } => self.depart(flight, life),
            Event::Crash { region, down } => self.crash(region, down),
            Event::Restart { region } => self.restart(region),
            Event::Sweep { partition } => self.sweep(partition),
            Event::Change { place } => self.change(place),
            Event::Rebirth { source } => self.rebirth(source),
            Event::Snapshot { every } => self.snapshot(every),
            Event::Respond(responding) => self.respond(&responding),
            Event::RespondExactly {
                region,
                key,
                at,
                response,
            } => {
                let query = self.plan.query(key);
                self.exact.settle(&query, region, at, &response, self.now);
            }
        }
    }

    fn sweep(&mut self, partition: u32) {
        for (place, source) in self.sources.iter().enumerate() {
            let keys = source.limiter.stats(self.now).keys;
            self.checkers.memory(place, keys, self.now);
        }
        for region in &mut self.regions {
            region.sweep(partition, self.now);
            let keys = region.ledger().map_or(0, Ledger::keys);
            self.checkers.ledger(keys, self.plan.counters(), self.now);
        }
        let partition = (partition + 1) % PARTITIONS;
        self.queue
            .push(self.now.after(SWEEP), Event::Sweep { partition });
    }

    fn snapshot(&mut self, every: Micros) {
        for region in &mut self.regions {
            region.snapshot(self.now);
        }
        self.queue
            .push(self.now.after(every), Event::Snapshot { every });
    }
}
