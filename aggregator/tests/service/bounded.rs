//! What is on disk is bounded by what lives, not by what ever was; what is in memory,
//! by what may be.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    common::client::{check, metric, until},
    counters::{add, value},
    server::Place,
};

const DAY: i64 = 24 * 3_600;

fn bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).unwrap();
    // A file may go while it is looked at.
    let sizes = files.filter_map(|file| file.unwrap().metadata().ok());
    sizes.map(|file| file.len()).sum()
}

#[test]
fn counters_keys_and_windows_that_have_ended_leave_no_trace_on_disk() {
    let mut place = Place::new();
    place.settings.snapshot_log_bytes = Some(64 << 10);
    place.write_rules(
        "version: 1\ndomain: test\nrules:\n\
         - { name: short, key: [header.x], limit: 9, window: 1s, algorithm: fixed_window }\n",
    );
    let server = place.start();
    let to = server.address;
    add(to, &json!({"counter_id": "alive", "delta": 7}));
    let mut most = 0;
    for day in 1..=20 {
        let adds = (0..200).map(|n| {
            let name = format!("{day}-{n}");
            json!({"counter_id": name, "ttl_s": 60, "idempotency_key": name})
        });
        let told = add(to, &json!({"adds": adds.collect::<Vec<_>>()}));
        assert_eq!(told.status, 200);
        for n in 0..5 {
            check(to, &json!({"rule": "short", "key": format!("{day}-{n}")}));
        }
        most = most.max(bytes(&place.data_dir()));
        place.set_clock_ahead_s(day * 2 * DAY);
    }
    assert_eq!(metric(to, "weir_counter_adds_total", "applied"), 4_001);
    let left = |name| metric(to, name, "");
    until("all that has ended is swept", || {
        left("weir_counters") == 1 && left("weir_idempotency_keys") == 0 && left("weir_keys") == 0
    });
    let taken = left("weir_snapshots_total");
    until("a snapshot holds what lives", || {
        let adds = vec![json!({"counter_id": "alive", "delta": 0}); 500];
        add(to, &json!({ "adds": adds }));
        left("weir_snapshots_total") >= taken + 2
    });
    assert_eq!(value(to, "alive"), Some(7));
    server.stop();
    let now = bytes(&place.data_dir());
    assert!(
        most > 300 << 10 && now < 200 << 10,
        "{most} bytes, then {now}"
    );
    let server = place.start();
    assert_eq!(value(server.address, "alive"), Some(7));
    assert_eq!(metric(server.address, "weir_counters", ""), 1);
}

#[test]
fn keys_beyond_those_that_may_be_held_free_nobody_who_is_over_the_limit_and_are_told_of() {
    let mut place = Place::new();
    place.settings.keys_max = Some(64);
    let server = place.start();
    let to = server.address;
    let allowed = |key: &str| {
        let asked = json!({"rule": "three", "key": [key, "GET"]});
        check(to, &asked).json()["allowed"] == true
    };
    let over: Vec<String> = (0..10).map(|n| format!("over-{n}")).collect();
    for key in &over {
        assert_eq!([(); 4].map(|()| allowed(key)), [true, true, true, false]);
    }
    assert!((0..500).all(|n| allowed(&format!("invented-{n}"))));
    assert!(over.iter().all(|key| !allowed(key)));
    // As many as may be held in each partition, and what was there before.
    let told = |name| metric(to, name, "");
    assert!(told("weir_keys") <= 128, "{}", told("weir_keys"));
    let crushed = told("weir_evicted_keys_total") + told("weir_untracked_hits_total");
    assert!(crushed >= 400, "{crushed}");
}
