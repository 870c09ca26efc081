//! One promise after the other.

use limiter::{
    counter::{Add, AddError, Bounds, CounterId, Counters, TenantLimits, Ttl},
    key::PARTITIONS,
};

use crate::{
    Books, LIFETIME, ROOMY,
    common::{SEEDS, at},
    id, key,
};

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

#[test]
fn a_sweep_of_much_that_lives_takes_as_many_steps_as_there_are_thousands() {
    let mut books = Books::new(ROOMY);
    let ids = (0..).map(|n| id(&n.to_string()));
    for id in ids.filter(|id| id.partition() == 5).take(4_000) {
        let mut add = Add::new(id, 1);
        add.idempotency = key("k");
        books.add(&add, at(0)).unwrap();
    }
    let mut steps = 1;
    while books.counters.sweep(5, at(200_000)) {
        steps += 1;
    }
    assert_eq!(books.counters.idempotency_keys(), 0);
    assert!(steps <= 16, "{steps}");
}
