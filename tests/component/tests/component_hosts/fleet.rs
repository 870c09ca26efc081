//! Several instances and one region: together they hold the limit.

use weir_component::books::Books;
use weir_component::rules::{HEADER, set, shared};
use weir_component::{Attempt, Counter, Instance, START_US, Verdict, request};
use weir_tests::aggregator::Aggregator;
use weir_tests::http;
use weir_tests::wait::wall_us;

/// Instances, and how a message of theirs gets to the region and back.
struct Fleet<C> {
    instances: Vec<Instance>,
    carry: C,
}

impl<C: FnMut(&[u8], u64) -> Option<Vec<u8>>> Fleet<C> {
    fn of(count: u64, carry: C) -> Self {
        let instances = (1..=count)
            .map(|number| Instance::start(number * 7_919))
            .collect();
        Self { instances, carry }
    }

    fn exchange(&mut self, place: usize, now: u64, last: bool) {
        let carry = &mut self.carry;
        self.instances[place].exchange(now, last, |message| carry(&message, now));
    }

    /// Whether a request that arrives at an instance is admitted in the end.
    fn admits(&mut self, place: usize, key: &str, now: u64) -> bool {
        let asked = request(HEADER, key);
        let mut decision = self.instances[place].check(&asked, Attempt::First, now);
        for attempt in [Attempt::Again, Attempt::Last] {
            if decision.verdict != Verdict::Hold {
                break;
            }
            self.exchange(place, now, false);
            decision = self.instances[place].check(&asked, attempt, now);
        }
        assert_ne!(
            decision.verdict,
            Verdict::Hold,
            "the last attempt waits no longer"
        );
        decision.verdict == Verdict::Allow
    }
}

#[test]
fn a_fleet_of_instances_admits_what_one_would_and_the_books_have_every_hit() {
    const LIMIT: u64 = 500;
    let mut books = Books::with(set(1, vec![shared(LIMIT)]), START_US);
    let mut fleet = Fleet::of(5, |message: &[u8], now| books.answer(message, now));
    for place in 0..5 {
        fleet.exchange(place, START_US, true);
    }
    let mut admitted = 0;
    for n in 0..4_000_usize {
        let now = START_US + n as u64 * 10_000;
        // Most of it at one instance, and a trickle at the others.
        let place = if n % 4 == 0 { n / 4 % 5 } else { 0 };
        admitted += u64::from(fleet.admits(place, "a", now));
        if n % 100 == 99 {
            (0..5).for_each(|place| fleet.exchange(place, now, false));
        }
    }
    let end = START_US + 40_000_000;
    (0..5).for_each(|place| fleet.exchange(place, end, true));
    assert!(
        (LIMIT - 10..=LIMIT).contains(&admitted),
        "{admitted} of {LIMIT}"
    );
    drop(fleet);
    assert_eq!(books.hits(), admitted);
}

#[test]
fn instances_over_a_real_region_hold_the_limit_by_any_way_to_check() {
    const LIMIT: u64 = 50;
    let rules = format!(
        "version: 1\ndomain: test\nrules:\n  - name: per-key\n    key: [header.{HEADER}]\n    \
         limit: {LIMIT}\n    window: 1d\n    algorithm: fixed_window\n    hold: 1s\n"
    );
    let region = Aggregator::start(&rules);
    let address = region.address();
    let carry = |message: &[u8], _| {
        let call = http::request("POST", "/v1/sync", &[], message);
        let reply = http::send(address, &call).ok()?;
        (reply.status == 200).then_some(reply.body)
    };
    let mut fleet = Fleet::of(3, carry);
    (0..3).for_each(|place| fleet.exchange(place, wall_us(), true));
    let counter: Vec<Counter> = fleet
        .instances
        .iter_mut()
        .map(|one| one.counter_of("per-key", &["a"]).expect("a counter"))
        .collect();
    let mut admitted = 0;
    for n in 0..200 {
        let (place, now) = (n % 3, wall_us());
        if n % 2 == 0 {
            admitted += u64::from(fleet.admits(place, "a", now));
            continue;
        }
        let mut verdict = fleet.instances[place]
            .check_key(counter[place], 1, Attempt::First, now)
            .0;
        if verdict == Verdict::Hold {
            fleet.exchange(place, now, false);
            verdict = fleet.instances[place]
                .check_key(counter[place], 1, Attempt::Last, wall_us())
                .0;
        }
        admitted += u64::from(verdict == Verdict::Allow);
    }
    (0..3).for_each(|place| fleet.exchange(place, wall_us(), true));
    assert!(
        (LIMIT - 1..=LIMIT + 1).contains(&admitted),
        "{admitted} of {LIMIT}"
    );
    let samples = region.metrics().expect("the region is there");
    let counted = samples.sum_or_zero("weir_hits_total", &[]);
    assert!(
        (counted - admitted as f64).abs() < 0.5,
        "{counted} of {admitted}"
    );
}
