//! Sources that have just started, with rules but without a word from their region, which
//! is too far away to be waited for.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod common;

use common::{Region, SEEDS, at, query, rule, rules, settings, source};
use limiter::{
    decision::Verdict,
    edge::{Limiter, Outgoing},
    quota::Algorithm,
    rule::Fallback,
    time::Timestamp,
};
use prost::Message;

/// From a question to its answer, in milliseconds.
const ROUND_TRIP: u64 = 60;

/// Sources of a region, and what is on its way between them.
struct World {
    region: Region,
    sources: Vec<Limiter>,
    /// When, of which source, which message, and the region's answer.
    answers: Vec<(u64, usize, u64, Vec<u8>)>,
    asked: Vec<(u64, usize, Outgoing)>,
}

impl World {
    fn new(limit: u64, count: u64) -> Self {
        let rules = rules(1, vec![rule(limit, 60_000, Algorithm::SlidingWindow)]);
        Self {
            region: Region::new(&rules, SEEDS),
            sources: (1..=count)
                .map(|number| source(number * 77_777, &rules, settings()))
                .collect(),
            answers: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Carries what has arrived by now.
    fn carry(&mut self, ms: u64) {
        for (place, source) in self.sources.iter_mut().enumerate() {
            while let Some(outgoing) = source.poll_send(at(ms)) {
                self.asked.push((ms + ROUND_TRIP / 2, place, outgoing));
            }
        }
        let (arrived, later): (Vec<_>, _) = self.asked.drain(..).partition(|(due, ..)| *due <= ms);
        self.asked = later;
        for (due, place, outgoing) in arrived {
            let reply = self.region.sync(&outgoing, at(due)).encode_to_vec();
            self.answers
                .push((due + ROUND_TRIP / 2, place, outgoing.id, reply));
        }
        let (arrived, later): (Vec<_>, _) =
            self.answers.drain(..).partition(|(due, ..)| *due <= ms);
        self.answers = later;
        for (_, place, id, reply) in arrived {
            self.sources[place]
                .handle_reply(id, &reply, at(ms))
                .unwrap();
        }
    }

    /// A request, which nobody lets wait.
    fn admits(&mut self, place: usize, key: &str, now: Timestamp) -> bool {
        let source = &mut self.sources[place];
        let query = query(source.rules(), key);
        let mut verdict = source.decide(&query, now);
        if matches!(verdict, Verdict::Hold { .. }) {
            verdict = source.decide_held(&query, now, true);
        }
        !matches!(verdict, Verdict::Deny(_))
    }
}

/// A region that has run for five seconds with one source, and so many others that have
/// just started.
fn joined_by(limit: u64, fresh: u64) -> World {
    let mut world = World::new(limit, fresh + 1);
    let others = world.sources.split_off(1);
    for ms in 0..5_000 {
        world.carry(ms);
    }
    world.sources.extend(others);
    world
}

#[test]
fn a_source_that_joins_a_far_region_turns_nobody_away_who_is_far_from_the_limit() {
    for (limit, fresh) in [(1_000, 1), (1_000, 4), (100, 15)] {
        let mut world = joined_by(limit, fresh);
        for request in 0..200 {
            let ms = 5_000 + request * 20;
            (ms - 19..=ms).for_each(|ms| world.carry(ms));
            let place = 1 + usize::try_from(request % fresh).unwrap();
            let key = format!("key-{}", request % 7);
            let said = format!("{limit} over {fresh}, {ms}");
            assert!(world.admits(place, &key, at(ms)), "{said}");
        }
    }
}

#[test]
fn a_region_that_has_just_started_again_makes_its_sources_deny_nobody_far_from_the_limit() {
    let mut world = joined_by(1_000, 3);
    let request = |world: &mut World, request: u64| {
        let ms = 5_000 + request * 20;
        (ms - 19..=ms).for_each(|ms| world.carry(ms));
        let place = usize::try_from(request % 4).unwrap();
        world.admits(place, &format!("key-{request}"), at(ms))
    };
    for n in 0..100 {
        assert!(request(&mut world, n), "{n}");
    }
    let all = world.region.log.0.len();
    world.region.restart(&[], all);
    // It knows neither its sources nor which keys are crowded, and says so.
    for n in 100..300 {
        assert!(request(&mut world, n), "{n}");
    }
}

#[test]
fn who_was_never_answered_does_what_the_rule_says_of_a_region_that_is_away() {
    let mut cautious = rule(20, 60_000, Algorithm::FixedWindow);
    cautious.local_cap = 3;
    let mut strict = cautious.clone();
    strict.on_failure.no_lease = Fallback::Deny;
    let allowed = [cautious, strict].map(|rule| {
        let rules = rules(1, vec![rule]);
        let mut source = source(1, &rules, settings());
        let asked = query(&rules, "a");
        let admitted = (0..10).filter(|ms| {
            assert!(
                matches!(source.decide(&asked, at(*ms)), Verdict::Hold { .. }),
                "the answer may still come in time"
            );
            matches!(
                source.decide_held(&asked, at(ms + 5), true),
                Verdict::Allow(_)
            )
        });
        admitted.count()
    });
    assert_eq!(allowed, [3, 0]);
}
