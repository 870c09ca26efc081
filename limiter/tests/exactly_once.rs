//! Every acknowledged hit is in the books once, whatever becomes of messages,
//! replies and the region.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod common;

use common::{Region, SEEDS, at, query, rule, rules, settings, source};
use limiter::{
    decision::Verdict,
    edge::{Answered, Limiter, Open, Outgoing},
    quota::Algorithm,
    request::Query,
    rule::{Cost, StatusMatch},
};
use proptest::{collection::vec, prelude::*};
use prost::Message;

/// What happens next. Numbers pick one of what there is.
#[derive(Clone, Copy, Debug)]
enum Step {
    Request {
        source: usize,
        key: usize,
    },
    /// A response comes: what it costs, 0 for a failure.
    Respond {
        which: usize,
        cost: u64,
    },
    Wait {
        ms: u64,
    },
    Arrive {
        which: usize,
        again: bool,
    },
    LoseMessage {
        which: usize,
    },
    Answer {
        which: usize,
    },
    LoseReply {
        which: usize,
    },
    Snapshot,
    Crash {
        lost: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let pick = || 0..1_000_usize;
    prop_oneof![
        6 => (pick(), pick()).prop_map(|(source, key)| Step::Request { source, key }),
        3 => (pick(), 0..5_u64).prop_map(|(which, cost)| Step::Respond { which, cost }),
        3 => (0..1_500_u64).prop_map(|ms| Step::Wait { ms }),
        4 => (pick(), any::<bool>()).prop_map(|(which, again)| Step::Arrive { which, again }),
        1 => pick().prop_map(|which| Step::LoseMessage { which }),
        4 => pick().prop_map(|which| Step::Answer { which }),
        1 => pick().prop_map(|which| Step::LoseReply { which }),
        1 => Just(Step::Snapshot),
        1 => (0..4_usize).prop_map(|lost| Step::Crash { lost }),
    ]
}

/// A reply that leaves once the log is durable up to `position`.
struct Reply {
    source: usize,
    id: u64,
    body: Vec<u8>,
    position: usize,
}

struct World {
    region: Region,
    sources: Vec<Limiter>,
    queries: Vec<Query>,
    messages: Vec<(usize, Outgoing)>,
    replies: Vec<Reply>,
    /// Records that a reply which has left speaks of.
    durable: usize,
    snapshot: Vec<(u64, Vec<Vec<u8>>)>,
    now_ms: u64,
    /// Hits that were admitted and have not been given back.
    admitted: u64,
    /// Requests that have no response yet, and at which source they are.
    open: Vec<(usize, Open)>,
}

/// A response that says what it has cost; a failure if that is nothing.
struct Response(u64);

impl Answered for Response {
    fn status(&self) -> u16 {
        if self.0 == 0 { 500 } else { 200 }
    }

    fn header(&self, _name: &str) -> Option<Vec<u8>> {
        Some(self.0.to_string().into_bytes())
    }
}

/// What a request spends before its response has come.
const UPFRONT: u64 = 2;

impl World {
    fn new() -> Self {
        let mut rule = rule(1_000_000, 60_000, Algorithm::SlidingWindow);
        rule.refund = vec![StatusMatch::Class(5)];
        rule.cost = Cost::ResponseHeader {
            name: "x-cost".into(),
            max: 100,
            upfront: UPFRONT,
            default: UPFRONT,
        };
        let rules = rules(1, vec![rule]);
        let region = Region::new(&rules, SEEDS);
        Self {
            durable: region.log.0.len(),
            snapshot: Vec::new(),
            region,
            sources: (1..=3)
                .map(|number| source(number, &rules, settings()))
                .collect(),
            queries: ["a", "b", "c", "d"].map(|key| query(&rules, key)).to_vec(),
            messages: Vec::new(),
            replies: Vec::new(),
            now_ms: 0,
            admitted: 0,
            open: Vec::new(),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Request { source, key } => self.request(source % 3, key % 4),
            Step::Respond { which, cost } => self.respond(which, cost),
            Step::Wait { ms } => self.now_ms += ms,
            Step::Arrive { which, again } => self.arrive(which, again),
            Step::LoseMessage { which } => drop(pick(&mut self.messages, which)),
            Step::Answer { which } => self.answer(which),
            Step::LoseReply { which } => drop(pick(&mut self.replies, which)),
            Step::Snapshot => self.write_snapshot(),
            Step::Crash { lost } => self.crash(lost),
        }
        for source in 0..self.sources.len() {
            while let Some(outgoing) = self.sources[source].poll_send(at(self.now_ms)) {
                self.messages.push((source, outgoing));
            }
        }
    }

    fn request(&mut self, source: usize, key: usize) {
        let limiter = &mut self.sources[source];
        let verdict = limiter.decide(&self.queries[key], at(self.now_ms));
        let verdict = match verdict {
            Verdict::Hold { .. } => limiter.decide_held(&self.queries[key], at(self.now_ms), true),
            decided => decided,
        };
        if matches!(verdict, Verdict::Allow(_)) {
            self.admitted += UPFRONT;
            let open = limiter.open(&self.queries[key], at(self.now_ms)).unwrap();
            self.open.push((source, open));
        }
    }

    fn respond(&mut self, which: usize, cost: u64) {
        let Some((source, open)) = pick(&mut self.open, which) else {
            return;
        };
        self.sources[source].close(&open, &Response(cost), at(self.now_ms));
        self.admitted = self.admitted - UPFRONT + cost;
    }

    /// Hits in the books that have not been given back.
    fn hits(&self) -> u64 {
        let returned = self.region.ledger.returned_by_rule();
        self.region.hits() - returned.iter().map(|(_, hits)| hits).sum::<u64>()
    }

    fn arrive(&mut self, which: usize, again: bool) {
        let Some((source, outgoing)) = pick(&mut self.messages, which) else {
            return;
        };
        let reply = self.region.sync(&outgoing, at(self.now_ms));
        self.replies.push(Reply {
            source,
            id: outgoing.id,
            body: reply.encode_to_vec(),
            position: self.region.log.0.len(),
        });
        if again {
            self.messages.push((source, outgoing));
        }
    }

    fn answer(&mut self, which: usize) {
        let Some(reply) = pick(&mut self.replies, which) else {
            return;
        };
        self.durable = self.durable.max(reply.position);
        self.sources[reply.source]
            .handle_reply(reply.id, &reply.body, at(self.now_ms))
            .unwrap();
    }

    /// A snapshot counts once all that it contains is durable.
    fn write_snapshot(&mut self) {
        self.snapshot = self.region.snapshot();
        self.durable = self.region.log.0.len();
    }

    /// Loses the last records that nobody has been told of, and the replies that
    /// speak of them.
    fn crash(&mut self, lost: usize) {
        let kept = self
            .region
            .log
            .0
            .len()
            .saturating_sub(lost)
            .max(self.durable);
        self.replies.retain(|reply| reply.position <= kept);
        self.region.restart(&self.snapshot, kept);
    }

    /// From now on every message arrives, and all that was counted gets through.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.take(Step::Wait { ms: 1_000 });
            while !self.messages.is_empty() {
                self.take(Step::Arrive {
                    which: 0,
                    again: false,
                });
            }
            while !self.replies.is_empty() {
                self.take(Step::Answer { which: 0 });
            }
        }
    }
}

fn pick<T>(list: &mut Vec<T>, which: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(which % list.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_hit_is_counted_once_whatever_becomes_of_messages_replies_and_the_region(
        steps in vec(step(), 1..150)
    ) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        world.settle();
        prop_assert_eq!(world.hits(), world.admitted);
        let kept = world.region.log.0.len();
        world.region.restart(&[], kept);
        prop_assert_eq!(world.hits(), world.admitted, "from the log alone");
    }
}

#[test]
fn a_flush_sent_twice_counts_once() {
    let rules = rules(1, vec![rule(100, 60_000, Algorithm::SlidingWindow)]);
    let mut region = Region::new(&rules, SEEDS);
    let mut limiter = source(1, &rules, settings());
    region.serve(&mut limiter, at(0));
    region.serve(&mut limiter, at(4_000));
    assert!(matches!(
        limiter.decide(&query(&rules, "a"), at(4_000)),
        Verdict::Allow(_)
    ));
    let flush = limiter.poll_send(at(5_100)).unwrap();
    assert!(!region.sync(&flush, at(5_100)).acks.is_empty());
    region.sync(&flush, at(5_200));
    assert_eq!(region.hits(), 1);
}
