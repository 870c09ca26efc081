//! One limit over a fleet, kept exactly: three Envoys of two workers each with the
//! shipped module, `weir serve` on a disk, near, far and dead.
//!
//! Clients count what they were admitted, by the clock and in the region's
//! windows. The books and the Envoys' metrics must say the same.

use std::time::Duration;

use weir_tests::fleet::{ENVOYS, Fleet, WORKERS};
use weir_tests::spray::{Answer, Spray, admitted, slowest};
use weir_tests::wait::{wait_until, wall_us};

/// A limit in windows short enough to see two of them whole, and large enough that
/// each source's part of the tolerance is more than a hit: a debt that is paid twice
/// would show.
const LIMIT: u64 = 500;
const WINDOW_S: u64 = 15;
const WINDOW_US: u64 = WINDOW_S * 1_000_000;

/// Ten times the limit.
const FLOOD_PER_SECOND: u32 = 334;

/// One rule with a fixed window, so that what a window admits is an exact number.
fn rules(limit: u64, window: &str, more: &str) -> String {
    format!(
        "version: 1\n\
         domain: api.example.com\n\
         rules:\n  \
           - name: per-key\n    \
             key: header.x-api-key\n    \
             limit: {limit}\n    \
             window: {window}\n    \
             algorithm: fixed_window\n    \
             {more}\n"
    )
}

/// The rule that most tests here are about, all else by default.
fn plain() -> String {
    rules(LIMIT, &format!("{WINDOW_S}s"), "")
}

/// Waits for the next window of the region's to begin, and says when it did.
fn next_window() -> u64 {
    let begins = (wall_us() / WINDOW_US + 1) * WINDOW_US;
    wait_until("a window begins", || wall_us() >= begins);
    begins
}

/// Each window was admitted the limit, to 2 %: those that the load was on for in
/// whole, from `first_us` on; the others no more than that.
fn assert_windows(answers: &[Answer], first_us: u64, windows: u64) {
    let mut seen = Vec::new();
    let whole = first_us / WINDOW_US..first_us / WINDOW_US + windows;
    for window in whole.start - 1..=whole.end {
        let within = |answer: &&Answer| answer.at_us / WINDOW_US == window;
        seen.push((window, admitted(answers.iter().filter(within))));
    }
    eprintln!("admitted of {LIMIT}, by window: {seen:?}");
    for &(window, count) in &seen {
        assert!(count <= LIMIT + LIMIT / 50, "too many: {seen:?}");
        let least = LIMIT - LIMIT / 50;
        assert!(
            count >= least || !whole.contains(&window),
            "too few: {seen:?}"
        );
    }
}

/// Nobody was left without an answer, and the books hold what was admitted.
fn assert_books(fleet: &Fleet, answers: &[Answer]) {
    let failed = answers.iter().filter(|answer| answer.status.is_none());
    assert_eq!(failed.count(), 0, "requests without an answer");
    let admitted = admitted(answers);
    wait_until("every admitted request is in the books, once", || {
        fleet.hits() == Some(admitted)
    });
}

/// Sprays at ten times the limit: two whole windows, with `turn` called when half
/// of the first one's limit is spent.
fn flood(fleet: &Fleet, turn: impl FnOnce(&Spray)) {
    let spray = fleet.spray("one", FLOOD_PER_SECOND);
    let first_us = next_window();
    wait_until("half of the limit is spent", || {
        admitted(&spray.answers_since(first_us)) >= LIMIT / 2
    });
    turn(&spray);
    next_window();
    next_window();
    let answers = spray.stop();
    eprintln!(
        "{} answers, {} asks, {} held, {} leaked",
        answers.len(),
        fleet.sum("weir_asks_total"),
        fleet.sum("weir_held_total"),
        fleet.leaked(),
    );
    assert_windows(&answers, first_us, 2);
    assert_books(fleet, &answers);
}

#[test]
fn a_spray_over_three_envoys_is_admitted_the_limit_to_two_percent() {
    let fleet = Fleet::start(&plain());
    flood(&fleet, |_| {});
}

#[test]
fn traffic_that_moves_to_one_envoy_finds_what_was_lent_to_the_others() {
    let fleet = Fleet::start(&plain());
    flood(&fleet, |spray| spray.move_to(1));
}

#[test]
fn a_region_twenty_milliseconds_away_keeps_the_limit_to_two_percent() {
    let fleet = Fleet::far(&plain(), Duration::from_millis(20), "");
    flood(&fleet, |_| {});
}

#[test]
fn without_its_region_a_fleet_leaks_no_more_than_it_says_and_may() {
    const CAP: u64 = 40;
    const MOST: u64 = (ENVOYS * WORKERS) as u64 * CAP;
    const LIMIT: u64 = 600;
    let mut fleet = Fleet::start(&rules(LIMIT, "1d", &format!("local_cap: {CAP}")));
    let known = fleet.spray("known", 150);
    wait_until("some hits are on record", || fleet.hits() >= Some(100));
    fleet.aggregator.kill();
    wait_until("every VM knows that its region is away", || {
        fleet.is_cut_off()
    });
    // A key may pass as one that nobody has met, for a while.
    let vms = (ENVOYS * (WORKERS + 1)) as u64;
    wait_until("no VM has cold credit left", || {
        fleet.sum("weir_reply_age_ms") > vms * 3_000
    });
    let known = known.stop();
    let leaked_known = leaked_of(&fleet, known.len());
    let strange = fleet.spray("strange", 150);
    wait_until("each worker has let through its cap", || {
        admitted(&strange.answers_since(0)) >= MOST
    });
    let capped_us = wall_us();
    wait_until("far more is asked for", || {
        strange.answers_since(capped_us).len() > 300
    });
    let strange = strange.stop();
    let leaked = leaked_of(&fleet, known.len() + strange.len());
    assert_eq!(admitted(&strange), MOST, "each worker has its cap");
    assert_eq!(leaked - leaked_known, MOST, "nothing of it was lent");
    let lent = admitted(&known) - leaked_known;
    assert!(leaked_known <= MOST, "leaked {leaked_known} and {lent}");
    assert!(lent <= LIMIT, "what did not leak was lent: {lent}");
    fleet.aggregator.restart();
    let all: Vec<Answer> = known.into_iter().chain(strange).collect();
    assert_books(&fleet, &all);
    wait_until("the books know what leaked", || {
        fleet.leaks_on_record() == Some(leaked)
    });
}

/// Hits that have leaked, once the metrics tell of all requests.
fn leaked_of(fleet: &Fleet, requests: usize) -> u64 {
    wait_until("the metrics have come to rest", || {
        fleet.sum("weir_requests_total") == requests as u64
    });
    fleet.leaked()
}

#[test]
fn a_lowered_limit_recalls_what_was_lent_under_the_old_one() {
    let fleet = Fleet::start(&rules(100_000, "1d", ""));
    let spray = fleet.spray("one", 150);
    wait_until("some hits are on record", || fleet.hits() >= Some(300));
    fleet.aggregator.set_rules(&rules(200, "1d", ""));
    let changed_us = wall_us();
    fleet.wait_for_rules(2);
    wait_until("two seconds have passed", || {
        wall_us() > changed_us + 2_000_000
    });
    let later_us = wall_us();
    // Several flushes long: what a source is allowed anew with each would show.
    wait_until("many requests later", || {
        spray.answers_since(later_us).len() > 600
    });
    let answers = spray.stop();
    let late = admitted(answers.iter().filter(|answer| answer.sent_us > later_us));
    assert_eq!(
        late, 0,
        "admitted 2 s after the limit was lowered below what was counted"
    );
    assert_books(&fleet, &answers);
}

/// Every request asks the region and waits for it.
const ASKS: &str = "consistency: exact\n    hold: 500ms";

/// A call is given up long after a hold has ended, so that it cannot end it.
const PATIENT: &str = r#"{"timeout_ms": 20000}"#;

/// Requests held while the region dies are answered once their hold is over.
fn assert_nobody_stays(mut fleet: Fleet, die: impl FnOnce(&mut Fleet)) {
    let spray = fleet.spray("one", 150);
    wait_until("requests are held", || {
        admitted(&spray.answers_since(0)) > 200
    });
    let held = fleet.sum("weir_held_total");
    die(&mut fleet);
    let dead_us = wall_us();
    wait_until("many requests later", || {
        spray.answers_since(dead_us).len() > 600
    });
    let answers = spray.stop();
    eprintln!("held {held}, slowest {:?}", slowest(&answers));
    assert!(held > 100, "held {held}");
    assert!(answers.iter().all(|answer| answer.status == Some(200)));
    let most = Duration::from_secs(4);
    assert!(slowest(&answers) < most, "{:?}", slowest(&answers));
}

#[test]
fn a_request_held_while_its_region_is_killed_is_answered() {
    let fleet = Fleet::far(
        &rules(100_000, "1d", ASKS),
        Duration::from_millis(20),
        PATIENT,
    );
    assert_nobody_stays(fleet, |fleet| fleet.aggregator.kill());
}

#[test]
fn a_request_held_while_its_region_falls_silent_is_answered() {
    let fleet = Fleet::far(
        &rules(100_000, "1d", ASKS),
        Duration::from_millis(20),
        PATIENT,
    );
    assert_nobody_stays(fleet, |fleet| {
        if let Some(delay) = &fleet.delay {
            delay.fall_silent();
        }
    });
}
