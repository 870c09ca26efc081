//! Counters beside a model that is too simple to be wrong, over deaths and
//! restarts from any snapshot.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod common;

use std::collections::BTreeMap;

use common::{Log, SEEDS, at};
use limiter::{
    counter::{
        Add, AddError, Added, Bounds, Counter, CounterId, Counters, IdempotencyKey, TenantLimits,
        Ttl,
    },
    key::PARTITIONS,
    time::{Micros, Timestamp},
};
use proptest::prelude::*;

/// How long a key is remembered here.
const LIFETIME: Micros = Micros::from_secs(100);

const ROOMY: TenantLimits = TenantLimits {
    counters_max: 1_000_000,
    bytes_max: 1 << 30,
};

fn id(name: &str) -> CounterId {
    CounterId::new("tenant", "space", name).unwrap()
}

fn key(key: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::new(key).unwrap())
}

/// Counters and their log.
struct Books {
    counters: Counters,
    log: Log,
}

/// Every partition, with what it contains.
type Snapshot = Vec<(u64, Vec<Vec<u8>>)>;

impl Books {
    fn new(limits: TenantLimits) -> Self {
        Self {
            counters: Counters::new(SEEDS, limits, LIFETIME),
            log: Log::default(),
        }
    }

    fn add(&mut self, add: &Add, now: Timestamp) -> Result<Added, AddError> {
        self.counters.add(add, now, &mut self.log)
    }

    fn value(&self, name: &str, now: Timestamp) -> Option<i64> {
        let seen = self.counters.read(&id(name), now);
        seen.counter.map(|counter| counter.value)
    }

    fn partition(&self, partition: u32) -> (u64, Vec<Vec<u8>>) {
        let mut chunks = Vec::new();
        self.counters
            .snapshot(partition, &mut |chunk| chunks.push(chunk.to_vec()));
        (self.log.0.len() as u64, chunks)
    }

    fn snapshot(&self) -> Snapshot {
        (0..PARTITIONS)
            .map(|partition| self.partition(partition))
            .collect()
    }

    /// Dies, and comes back from a snapshot and the log after it, `again` times
    /// over.
    fn restart(&mut self, snapshot: &Snapshot, again: usize) {
        self.counters = Counters::new([9, 8, 7, 6], ROOMY, LIFETIME);
        for (partition, (contains, chunks)) in (0..).zip(snapshot) {
            for chunk in chunks.iter().map(Vec::as_slice).chain([[].as_slice()]) {
                self.counters.restore(partition, *contains, chunk).unwrap();
            }
        }
        for _ in 0..=again {
            for (position, record) in (1..).zip(&self.log.0) {
                self.counters.replay(position, record).unwrap();
            }
        }
    }
}

/// The model: what each counter is, and what each key was told.
#[derive(Default)]
struct Model {
    counters: BTreeMap<String, (i64, Option<Timestamp>)>,
    told: BTreeMap<(String, String), (Add, i64, bool, Timestamp)>,
}

impl Model {
    fn read(&self, name: &str, now: Timestamp) -> Option<(i64, Option<Timestamp>)> {
        let known = self.counters.get(name).copied();
        known.filter(|(_, end)| end.is_none_or(|end| end > now))
    }

    fn add(&mut self, step: &Step, add: &Add, now: Timestamp) -> Result<(i64, bool), ()> {
        let name = step.name();
        let told = step.key.map(|key| (name.clone(), key.to_string()));
        if let Some((first, value, applied, until)) = told.as_ref().and_then(|t| self.told.get(t))
            && now < *until
        {
            return if first == add {
                Ok((*value, *applied))
            } else {
                Err(())
            };
        }
        let (value, end) = self.read(&name, now).unwrap_or((0, None));
        let sum = value.checked_add(add.delta).ok_or(())?;
        let applied =
            step.min.is_none_or(|min| min <= sum) && step.max.is_none_or(|max| sum <= max);
        let value = if applied { sum } else { value };
        if applied {
            let ttl = step.ttl.map(|secs| now.after(Micros::from_secs(secs)));
            self.counters.insert(name, (sum, ttl.or(end)));
        }
        if let Some(told) = told {
            let until = now.after(LIFETIME);
            self.told.insert(told, (add.clone(), value, applied, until));
        }
        Ok((value, applied))
    }
}

#[derive(Clone, Debug)]
struct Step {
    what: What,
    counter: u8,
    delta: i64,
    min: Option<i64>,
    max: Option<i64>,
    ttl: Option<u64>,
    key: Option<u8>,
    wait: u64,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Add,
    Reset,
    Delete,
    Sweep,
    /// Write a few partitions down anew.
    Snapshot,
    Restart,
}

impl Step {
    fn name(&self) -> String {
        format!("c{}", self.counter)
    }

    fn add(&self) -> Option<Add> {
        Some(Add {
            bounds: Bounds::new(self.min, self.max)?,
            ttl: self.ttl.and_then(Ttl::from_secs),
            idempotency: self.key.and_then(|n| key(&n.to_string())),
            ..Add::new(id(&self.name()), self.delta)
        })
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![
        12 => Just(What::Add),
        1 => Just(What::Reset),
        1 => Just(What::Delete),
        2 => Just(What::Sweep),
        2 => Just(What::Snapshot),
        1 => Just(What::Restart),
    ];
    let delta = prop_oneof![8 => -5..10_i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    let bound = || proptest::option::weighted(0.3, -10..10_i64);
    let rest = (
        proptest::option::weighted(0.3, 1..60_u64),
        proptest::option::weighted(0.4, 0..4_u8),
        prop_oneof![4 => 0..3_000_u64, 1 => 0..120_000_u64],
    );
    let step = (what, 0..6_u8, delta, bound(), bound(), rest).prop_map(
        |(what, counter, delta, min, max, (ttl, key, wait))| Step {
            what,
            counter,
            delta,
            min,
            max,
            ttl,
            key,
            wait,
        },
    );
    proptest::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn counters_are_what_the_model_says_whenever_they_die(steps in steps()) {
        let mut books = Books::new(ROOMY);
        let mut model = Model::default();
        let mut snapshot = books.snapshot();
        let mut millis = 0;
        for step in &steps {
            millis += step.wait;
            let (now, name) = (at(millis), step.name());
            match step.what {
                What::Add => {
                    let Some(add) = step.add() else { continue };
                    let added = books.add(&add, now);
                    let told = added.map(|added| (added.value, added.applied)).map_err(|_| ());
                    prop_assert_eq!(told, model.add(step, &add, now));
                }
                What::Reset => {
                    books.counters.reset(&id(&name), now, &mut books.log).unwrap();
                    let end = model.read(&name, now).and_then(|(_, end)| end);
                    model.counters.insert(name, (0, end));
                }
                What::Delete => {
                    let was = books.counters.delete(&id(&name), now, &mut books.log).counter;
                    prop_assert_eq!(was.is_some(), model.read(&name, now).is_some());
                    model.counters.remove(&name);
                }
                What::Sweep => (0..PARTITIONS).for_each(|partition| {
                    while books.counters.sweep(partition, now) {}
                }),
                // As the service takes them: one partition after the other, with
                // records between.
                What::Snapshot => {
                    let first = u32::from(step.counter) * 11;
                    for partition in first..(first + 30).min(PARTITIONS) {
                        snapshot[partition as usize] = books.partition(partition);
                    }
                }
                What::Restart => books.restart(&snapshot, usize::from(step.counter % 2)),
            }
            for counter in 0..6 {
                let name = format!("c{counter}");
                let seen = books.counters.read(&id(&name), now).counter;
                let known = model.read(&name, now);
                let known = known.map(|(value, expires)| Counter { value, expires });
                prop_assert_eq!(seen, known);
            }
        }
    }
}

#[test]
fn a_counter_that_was_never_written_is_not_zero_and_a_reset_one_is() {
    let mut books = Books::new(ROOMY);
    assert_eq!(books.value("a", at(0)), None);
    books
        .counters
        .reset(&id("a"), at(0), &mut books.log)
        .unwrap();
    assert_eq!(books.value("a", at(0)), Some(0));
    books.counters.delete(&id("a"), at(0), &mut books.log);
    assert_eq!(books.value("a", at(0)), None);
}

#[test]
fn each_add_with_a_ttl_renews_it_and_one_without_leaves_it() {
    let mut books = Books::new(ROOMY);
    let mut add = Add::new(id("a"), 1);
    add.ttl = Ttl::from_secs(10);
    books.add(&add, at(0)).unwrap();
    books.add(&add, at(6_000)).unwrap();
    books.add(&Add::new(id("a"), 1), at(12_000)).unwrap();
    assert_eq!(books.value("a", at(15_999)), Some(3));
    assert_eq!(books.value("a", at(16_000)), None);
    // It begins anew, and without an end.
    assert_eq!(
        books.add(&Add::new(id("a"), 1), at(16_000)).unwrap().value,
        1
    );
    assert_eq!(books.value("a", at(1_000_000)), Some(1));
}

#[test]
fn an_add_that_would_lead_out_of_bounds_changes_nothing_and_creates_nothing() {
    let mut books = Books::new(ROOMY);
    let mut add = Add::new(id("seats"), 3);
    add.bounds = Bounds::new(Some(0), Some(5)).unwrap();
    add.ttl = Ttl::from_secs(10);
    let applied: Vec<_> = (0..2).map(|_| books.add(&add, at(0)).unwrap()).collect();
    assert_eq!((applied[0].value, applied[0].applied), (3, true));
    assert_eq!((applied[1].value, applied[1].applied), (3, false));
    add.delta = -4;
    assert!(!books.add(&add, at(0)).unwrap().applied);
    add.id = id("other");
    assert!(!books.add(&add, at(0)).unwrap().applied);
    assert_eq!(books.value("other", at(0)), None);
    assert_eq!(books.log.0.len(), 1);
}

#[test]
fn an_add_sent_again_is_told_the_same_even_when_its_counter_is_gone() {
    let mut books = Books::new(ROOMY);
    let mut add = Add::new(id("a"), 5);
    add.idempotency = key("k");
    let first = books.add(&add, at(0)).unwrap();
    books.add(&Add::new(id("a"), 1), at(1)).unwrap();
    books.counters.delete(&id("a"), at(2), &mut books.log);
    let again = books.add(&add, at(3)).unwrap();
    assert_eq!(
        (again.value, again.applied, again.replayed),
        (5, true, true)
    );
    assert_eq!(again.rests_on, first.rests_on);
    assert_eq!(books.value("a", at(3)), None);
    // Its counter is not another's, and its key means one add.
    let other = Add {
        id: id("b"),
        ..add.clone()
    };
    assert!(!books.add(&other, at(3)).unwrap().replayed);
    let reused = Add {
        delta: 6,
        ..add.clone()
    };
    assert_eq!(books.add(&reused, at(3)), Err(AddError::KeyReused));
    // Once its lifetime is over it counts anew.
    assert!(books.add(&add, at(99_999)).unwrap().replayed);
    assert!(!books.add(&add, at(100_000)).unwrap().replayed);
}

#[test]
fn a_sum_that_64_bits_do_not_hold_is_refused_and_not_wrapped() {
    let mut books = Books::new(ROOMY);
    books.add(&Add::new(id("a"), i64::MAX), at(0)).unwrap();
    let error = books.add(&Add::new(id("a"), 1), at(0)).unwrap_err();
    assert_eq!(
        error,
        AddError::Overflow {
            value: i64::MAX,
            delta: 1
        }
    );
    assert_eq!(books.value("a", at(0)), Some(i64::MAX));
}

#[test]
fn a_tenant_that_keeps_as_much_as_it_may_is_told_which_limit_and_others_are_not() {
    let limits = TenantLimits {
        counters_max: 2,
        bytes_max: 600,
    };
    let mut books = Books::new(limits);
    let mut limit_of = |add: &Add, now| match books.add(add, now) {
        Ok(_) => "",
        Err(AddError::TooMuch(limit)) => limit.what,
        Err(other) => panic!("{other}"),
    };
    let mut short = Add::new(id("a"), 1);
    short.ttl = Ttl::from_secs(1);
    assert_eq!(limit_of(&short, at(0)), "");
    assert_eq!(limit_of(&Add::new(id("b"), 1), at(0)), "");
    assert_eq!(
        limit_of(&Add::new(id("c"), 1), at(0)),
        "tenant_counters_max"
    );
    assert_eq!(limit_of(&Add::new(id("b"), 1), at(0)), "");
    let other = CounterId::new("other", "space", "c").unwrap();
    assert_eq!(limit_of(&Add::new(other, 1), at(0)), "");
    let mut keyed = Add::new(id("b"), 1);
    let refused = (0..10).find_map(|n| {
        keyed.idempotency = key(&n.to_string());
        Some(limit_of(&keyed, at(0))).filter(|limit| !limit.is_empty())
    });
    assert_eq!(refused, Some("tenant_counter_bytes_max"));
    // What has ended and was swept makes room.
    let later = at(200_000);
    for partition in 0..PARTITIONS {
        while books.counters.sweep(partition, later) {}
    }
    assert_eq!(
        (books.counters.len(), books.counters.idempotency_keys()),
        (2, 0)
    );
    books.add(&Add::new(id("c"), 1), later).unwrap();
}

#[test]
fn the_time_of_the_latest_record_is_known_after_a_restart() {
    let mut books = Books::new(ROOMY);
    let nothing = books.snapshot();
    for second in [1, 5, 3] {
        books
            .add(&Add::new(id("a"), 1), at(second * 1_000))
            .unwrap();
    }
    books.restart(&nothing, 0);
    assert_eq!(books.counters.latest(), at(5_000));
}

#[test]
fn what_is_not_a_record_of_counters_is_refused_with_its_place() {
    let mut counters = Counters::new(SEEDS, ROOMY, LIFETIME);
    let error = counters.replay(7, b"\xff\xff").unwrap_err();
    assert_eq!(error.position, 7);
    assert!(counters.restore(99, 1, b"").is_err());
    assert!(counters.restore(0, 1, b"\x05ab").is_err());
}
