//! Whatever an instance is given: it answers, and goes on.

use weir_component::books::Books;
use weir_component::rules::{HEADER, alone, compiled, set, shared};
use weir_component::wit::weir::limiter::types::Response;
use weir_component::{
    Answer, Attempt, Counter, Instance, KeyCheck, Request, START_US, Verdict, request,
};

/// Numbers without a pattern, the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 33
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.next() % 70;
        (0..len).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    fn request(&mut self) -> Request {
        let header = |noise: &mut Self| {
            (
                String::from_utf8_lossy(&noise.bytes()).into_owned(),
                noise.bytes(),
            )
        };
        Request {
            method: self.bytes(),
            host: self.bytes(),
            path: self.bytes(),
            headers: vec![header(self), (HEADER.to_owned(), self.bytes())],
            peer: Some(String::from_utf8_lossy(&self.bytes()).into_owned()),
            attributes: vec![header(self)],
        }
    }
}

#[test]
fn nothing_that_it_is_given_makes_it_trap() {
    let rules = compiled(&set(
        1,
        vec![alone(5), {
            let mut rule = shared(5);
            rule.name = "b".to_owned();
            rule
        }],
    ));
    let mut instance = Instance::start(1);
    assert_eq!(instance.set_rules(&rules), Ok(1));
    let mut noise = Noise(1);
    for round in 0..2_000 {
        let now = noise.next() >> (noise.next() % 64);
        let attempt = [Attempt::First, Attempt::Again, Attempt::Last][round % 3];
        let asked = noise.request();
        instance.check(&asked, attempt, now);
        let counter = Counter {
            rule: noise.next(),
            high: noise.next(),
            low: noise.next(),
        };
        instance.check_key(counter, noise.next(), attempt, now);
        let known = instance.counter_of("b", &["x"]).expect("a counter");
        let checks = [
            KeyCheck {
                counter: known,
                cost: u64::MAX,
            },
            KeyCheck { counter, cost: 1 },
        ];
        instance.call(|source, store| source.call_check_batch(store, &checks, attempt, now));
        let answers = [
            Answer {
                id: noise.next(),
                body: Some(noise.bytes()),
            },
            Answer { id: 1, body: None },
        ];
        instance.call(|source, store| source.call_apply(store, &answers, now));
        let mut broken = rules.clone();
        let place = noise.next() as usize % broken.len();
        broken[place] = noise.next().to_le_bytes()[0];
        let taken = instance.set_rules(&broken);
        if taken.is_ok() {
            assert!(instance.set_rules(&rules).is_ok());
        }
        let response = Response {
            status: 1,
            headers: vec![(String::new(), noise.bytes())],
        };
        instance.call(|source, store| {
            source.call_settle(store, noise.next() % 9, Some(&response), now)
        });
        instance.call(|source, store| source.call_drain(store, now, round % 2 == 0));
        instance.call(|source, store| source.call_metrics(store, now));
        instance.call(|source, store| source.call_due(store));
    }
    let mut fresh = |value: &str| {
        instance
            .check(&request(HEADER, value), Attempt::First, START_US)
            .verdict
    };
    assert_ne!(fresh("after all that"), Verdict::Pass);
}

#[test]
fn a_reply_that_is_none_is_told_of_and_the_message_is_sent_again() {
    let mut books = Books::with(set(1, vec![shared(5)]), START_US);
    let mut instance = Instance::start(1);
    let due = instance.call(|source, store| source.call_drain(store, START_US, false));
    let id = due.first().expect("a source speaks at once").id;
    let answers = [Answer {
        id,
        body: Some(b"\xff".to_vec()),
    }];
    let troubles = instance.call(|source, store| source.call_apply(store, &answers, START_US));
    assert_eq!(troubles.first().map(|trouble| trouble.id), Some(id));
    let later = instance
        .call(|source, store| source.call_due(store))
        .max(START_US);
    instance.exchange(later, false, |message| books.answer(&message, later));
    assert_eq!(
        instance.call(|source, store| source.call_revision(store)),
        1
    );
}

#[test]
fn a_clock_that_goes_back_makes_no_hits_and_loses_none() {
    let mut books = Books::with(set(1, vec![shared(10)]), START_US);
    let mut instance = Instance::start(1);
    let mut admitted = 0;
    for second in 0..20 {
        // The instance's clock is set back by an hour on the way; the region's is not.
        let region = START_US + second * 1_000_000;
        let host = if second < 10 {
            region
        } else {
            region - 3_600_000_000
        };
        instance.exchange(host, true, |message| books.answer(&message, region));
        let asked = request(HEADER, "a");
        let mut decision = instance.check(&asked, Attempt::First, host);
        if decision.verdict == Verdict::Hold {
            instance.exchange(host, false, |message| books.answer(&message, region));
            decision = instance.check(&asked, Attempt::Last, host);
        }
        admitted += u64::from(decision.verdict == Verdict::Allow);
    }
    let (host, region) = (START_US - 3_580_000_000, START_US + 20_000_000);
    instance.exchange(host, true, |message| books.answer(&message, region));
    assert_eq!((admitted, books.hits()), (10, 10));
}
