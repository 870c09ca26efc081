//! Isolates, objects and the requests that carry their work end without a word. What
//! was acknowledged is kept, and everything counts once.

use std::time::Duration;

use weir_tests::http::{self, get};
use weir_tests::load::{Load, Until};
use weir_tests::rules::per_header;
use weir_tests::spray::{Spray, admitted};
use weir_tests::upstream::Upstream;
use weir_tests::wait::{wait_until, wall_us};
use weir_tests::workerd::{Setup, Workerd, compiled};

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3_600;

/// A clock that stands still between two waits, as it does in production, and no time
/// at all before the first request. Objects whose log is soon longer than a snapshot,
/// in rows that are soon full, and that are swept when a test says so.
const PRODUCTION: &str = r#"
import worker, { Region as Base } from "./main.js";
const clock = Date.now.bind(Date);
const timer = globalThis.setTimeout;
let now = 0;
Date.now = () => now;
globalThis.setTimeout = (act, ms) => timer(() => { now = clock(); act(); }, ms);
Base.logBytes = 2_000;
Base.rowBytes = 100;
export class Region extends Base {
  sync(message) {
    now = clock();
    return super.sync(message);
  }
  async sweep() {
    now = clock();
    await this.ctx.storage.deleteAlarm();
    await this.alarm();
    return this.isAwake();
  }
  async isAwake() {
    return (await this.ctx.storage.getAlarm()) !== null;
  }
}
export default {
  async fetch(request, env, ctx) {
    now = clock();
    const act = /\/(sweep|isAwake)$/.exec(request.url)?.[1];
    if (act === undefined) return worker.fetch(request, env, ctx);
    const objects = [0, 1, 2, 3].map((n) => env.WEIR_OBJECTS.get(env.WEIR_OBJECTS.idFromName(`weir-${n}`)));
    const awake = await Promise.all(objects.map((object) => object[act]()));
    return new Response(String(awake.filter((awake) => awake).length));
  },
};
"#;

#[test]
fn objects_killed_under_load_lose_nothing_that_they_acknowledged() {
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", 1_000_000, LONG)]);
    let setup = Setup::new(&rules, origin.address()).isolates(2);
    let mut workerd = Workerd::start(setup.entry("production.js", PRODUCTION));
    let mut known = 0;
    for life in 0..3_u64 {
        let load = Load {
            addresses: workerd.addresses().to_vec(),
            connections: 2,
            pause: Duration::from_millis(1),
            until: Until::Requests(400),
        };
        let watched = std::thread::scope(|scope| {
            let request = |n: usize, i: u64| get("/", &[("x-api-key", &format!("{n}-{}", i % 50))]);
            let running = scope.spawn(move || load.run(request));
            let begun = known;
            wait_until("some of it is acknowledged", || {
                workerd.books("hits").is_some_and(|hits| hits > begun + 100)
            });
            let watched = workerd.books("hits");
            workerd.kill();
            let _ = running.join();
            watched.expect("it was there")
        });
        workerd.restart();
        let kept = workerd.books("hits").expect("the objects answer");
        assert!(kept >= watched, "life {life}: {kept} of {watched}");
        known = kept;
    }
    let counted = (0..5).map(|_| workerd.get("/", &[("x-api-key", "last")]).status);
    assert!(counted.into_iter().all(|status| status == 200));
    wait_until("the books go on from there", || {
        workerd.books("hits") == Some(known + 5)
    });
}

#[test]
fn objects_that_start_anew_under_load_count_every_hit_once() {
    // Some answers are lost after what they told of was written, too.
    const ENTRY: &str = r#"
import worker, { Region as Base } from "./main.js";
Base.logBytes = 2_000;
let messages = 0;
export class Region extends Base {
  async sync(message) {
    const answer = super.sync(message);
    messages += 1;
    if (messages % 7 === 0) {
      await this.ctx.storage.sync();
      this.ctx.abort("a restart in the midst of it");
    }
    return answer;
  }
}
export default worker;
"#;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", 1_000_000, LONG)]);
    let setup = Setup::new(&rules, origin.address()).isolates(2);
    let workerd = Workerd::start(setup.entry("restarts.js", ENTRY));
    let request = get("/", &[("x-api-key", "one")]);
    let spray = Spray::start(workerd.addresses().to_vec(), 4, 200, request);
    let restarts = || {
        workerd
            .process()
            .log()
            .matches("in the midst of it")
            .count()
    };
    wait_until("some have started anew", || restarts() >= 5);
    let admitted = admitted(&spray.stop());
    assert!(admitted > 100, "{admitted}");
    wait_until("every admitted request is in the books, once", || {
        workerd.get("/", &[]).status == 200 && workerd.books("hits") == Some(admitted)
    });
    let request = get("/", &[("x-api-key", "two")]);
    assert_eq!(
        http::send(workerd.address(), &request)
            .map(|a| a.status)
            .ok(),
        Some(200)
    );
    wait_until("the books go on from there", || {
        workerd.get("/", &[]).status == 200 && workerd.books("hits") == Some(admitted + 1)
    });
}

#[test]
fn isolates_that_are_thrown_away_lose_what_they_counted_since_their_last_flush_and_no_more() {
    // A second between two flushes, and time for the last one to arrive.
    const FLUSHED_US: u64 = 2_000_000;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", 1_000_000, LONG)]);
    let mut workerd = Workerd::start(Setup::new(&rules, origin.address()).isolates(2));
    let request = get("/", &[("x-api-key", "one")]);
    let spray = Spray::start(workerd.addresses().to_vec(), 4, 200, request);
    let began_us = wall_us();
    wait_until("it has gone on for a while", || {
        wall_us() > began_us + 2 * FLUSHED_US
    });
    let killed_us = wall_us();
    workerd.kill();
    let answers = spray.stop();
    workerd.restart();
    let kept = workerd.books("hits").expect("the objects answer");
    let by = |us: u64| admitted(answers.iter().filter(|answer| answer.at_us <= us));
    eprintln!("{kept} kept of {}", by(killed_us));
    assert!(kept <= by(u64::MAX), "{kept} of {}", by(u64::MAX));
    let due = by(killed_us - FLUSHED_US);
    assert!(kept >= due && due > 100, "{kept} kept, {due} were due");
}

#[test]
fn what_comes_while_one_request_hands_the_flusher_to_another_is_flushed_too() {
    const ENTRY: &str = r#"
import worker, { Region } from "./main.js";
import { Isolate } from "./isolate.js";
Isolate.flusherMs = 1;
export { Region };
export default worker;
"#;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", 1_000_000, LONG)]);
    let setup = Setup::new(&rules, origin.address()).entry("hasty.js", ENTRY);
    let workerd = Workerd::start(setup);
    let spray = Spray::start(
        workerd.addresses().to_vec(),
        1,
        50,
        get("/", &[("x-api-key", "one")]),
    );
    wait_until("some of it is in the books", || {
        workerd.books("hits").is_some_and(|hits| hits > 50)
    });
    let admitted = admitted(&spray.stop());
    wait_until("all of it is", || workerd.books("hits") == Some(admitted));
}

#[test]
fn a_flusher_that_was_cut_off_without_a_word_is_replaced() {
    // The first timers never come: what waited for them is gone.
    const ENTRY: &str = r#"
const timer = globalThis.setTimeout;
let left = 3;
globalThis.setTimeout = (act, ms) => (left-- > 0 ? 0 : timer(act, ms));
export { default, Region } from "./main.js";
"#;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", 1_000, LONG)]);
    let setup = Setup::new(&rules, origin.address()).entry("cut.js", ENTRY);
    let workerd = Workerd::start(setup);
    assert_eq!(workerd.statuses("one", 5), [200; 5]);
    let cut_us = wall_us();
    wait_until("its deadline has passed", || wall_us() > cut_us + 4_000_000);
    assert_eq!(workerd.statuses("one", 5), [200; 5]);
    // Nobody else comes: only a flusher can send the last of these.
    wait_until("all are in the books", || workerd.books("hits") == Some(10));
}

#[test]
fn where_the_clock_stands_still_limits_hold_and_what_is_over_is_forgotten_but_for_the_books() {
    const LIMIT: u64 = 20;
    let origin = Upstream::start();
    let rules = compiled(1, vec![per_header("per-key", "x-api-key", LIMIT, 3)]);
    let setup = Setup::new(&rules, origin.address()).entry("production.js", PRODUCTION);
    let mut workerd = Workerd::start(setup);
    let mut admitted = 0;
    let mut windows = 0;
    while windows < 2 {
        // Some window is met in whole, whenever the first request comes.
        let told = workerd.statuses("one", 50);
        let passed = told.iter().filter(|status| **status == 200).count() as u64;
        assert!((1..=2 * LIMIT).contains(&passed), "{told:?}");
        assert!(told.contains(&429), "{told:?}");
        admitted += passed;
        windows += 1;
        wait_until("the window ends", || {
            let passed = workerd.get("/", &[("x-api-key", "one")]).status == 200;
            admitted += u64::from(passed);
            passed
        });
    }
    wait_until("all of it is in the books", || {
        workerd.books("hits") == Some(admitted)
    });
    wait_until("what is over is forgotten, and all objects sleep", || {
        workerd.get("/sweep", &[]).text() == "0" && workerd.books("keys") == Some(0)
    });
    assert_eq!(workerd.books("log_rows"), Some(0));
    admitted += 1;
    assert_eq!(workerd.statuses("one", 1), [200]);
    wait_until("the object of that key wakes", || {
        workerd.get("/isAwake", &[]).text() == "1"
    });
    wait_until("it is in the books", || {
        workerd.books("hits") == Some(admitted)
    });
    workerd.restart();
    assert_eq!(workerd.books("hits"), Some(admitted));
}
