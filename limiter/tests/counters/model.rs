//! Random steps beside a model that is too simple to be wrong.

use std::collections::BTreeMap;

use limiter::{
    counter::{Add, Bounds, Counter, Ttl},
    key::PARTITIONS,
    time::{Micros, Timestamp},
};
use proptest::prelude::*;

use crate::{Books, LIFETIME, ROOMY, common::at, id, key};

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
