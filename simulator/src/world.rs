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

pub(crate) use finish::Run;

/// Time from one partition of the region being swept to the next.
const SWEEP: Micros = Micros::from_secs(1);

/// How soon a source is woken again that wants to be woken at once.
const TICK: Micros = Micros::from_millis(1);

/// How long a fleet has after the last request to get all it counted through.
const SETTLE: Micros = Micros::from_secs(30);

/// A fleet, its region, and all that is on its way.
pub(crate) struct World<'a> {
    setup: &'a Setup,
    plan: &'a Plan,
    now: Timestamp,
    queue: Queue<Event>,
    sources: Vec<Source>,
    region: Region,
    network: Network,
    exact: Exact,
    checkers: Checkers,
    responses: Chance,
}

/// What can happen, other than a request.
enum Event {
    /// A source wants to be woken.
    Wake { source: usize },
    /// A held request's patience ends.
    GiveUp { source: usize, ticket: u64 },
    /// A message reaches the region.
    Arrive(Flight),
    /// What a reply speaks of is durable.
    Durable {
        flight: Flight,
        reply: Rc<Reply>,
        life: u64,
    },
    /// A source hears what became of a message: a reply, or that there is none.
    Answer {
        source: usize,
        id: u64,
        reply: Option<Rc<Reply>>,
    },
    /// The region dies, and comes back so much later.
    Crash { down: Micros },
    /// The region comes back.
    Restart,
    /// The region tidies up.
    Sweep { partition: u32 },
    /// Other rules come into force.
    Change { place: usize },
    /// A source dies, with all that it has not said, and is born again.
    Rebirth { source: usize },
    /// The region writes itself down.
    Snapshot { every: Micros },
    /// The response to a request that a source has admitted.
    Respond(Box<Responding>),
    /// The same, to a request that one central limiter has.
    RespondExactly {
        key: usize,
        at: Timestamp,
        response: Response,
    },
}

/// A response on its way.
struct Responding {
    source: usize,
    life: u64,
    key: usize,
    /// When its request was admitted.
    at: Timestamp,
    open: Open,
    response: Response,
}

/// A message on its way to the region.
#[derive(Clone)]
struct Flight {
    source: usize,
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
            region: Region::new(setup, &plan.rules),
            network: Network::new(setup),
            exact: Exact::default(),
            checkers: Checkers::new(setup),
            responses: Chance::new(setup.seed, Purpose::Responses),
            setup,
            plan,
        };
        world.wake_all();
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
        for (at, down) in &self.setup.restarts {
            self.queue.push(*at, Event::Crash { down: *down });
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
            Event::Answer { source, id, reply } => self.answer(source, id, reply.as_deref()),
            Event::Crash { down } => self.crash(down),
            Event::Restart => self.restart(),
            Event::Sweep { partition } => self.sweep(partition),
            Event::Change { place } => self.change(place),
            Event::Rebirth { source } => self.rebirth(source),
            Event::Snapshot { every } => self.snapshot(every),
            Event::Respond(responding) => self.respond(&responding),
            Event::RespondExactly { key, at, response } => {
                let query = &self.plan.queries[key];
                self.exact.settle(query, at, &response, self.now);
            }
        }
    }

    fn sweep(&mut self, partition: u32) {
        self.region.sweep(partition, self.now);
        let keys = self
            .sources
            .iter()
            .map(|source| source.limiter.stats(self.now).keys);
        let keys: Vec<u64> = keys.collect();
        for (source, keys) in keys.into_iter().enumerate() {
            self.checkers.memory(source, keys, self.now);
        }
        let asked = self.plan.queries.iter().map(|query| query.hits.len());
        let keys = self.region.ledger().map_or(0, Ledger::keys);
        self.checkers.ledger(keys, asked.sum(), self.now);
        let partition = (partition + 1) % PARTITIONS;
        self.queue
            .push(self.now.after(SWEEP), Event::Sweep { partition });
    }

    fn snapshot(&mut self, every: Micros) {
        self.region.snapshot(self.now);
        self.queue
            .push(self.now.after(every), Event::Snapshot { every });
    }
}
