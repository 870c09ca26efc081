//! The region's books with 1 and 5 million keys: memory for each, how long a start
//! takes, and how long the ledger is kept from answering.
//!
//! Memory and the longest step are measured on the Ledger in the bench's own
//! process (a step's processor time, so that a busy machine is not in it), start
//! and what a source notices on `weir serve`. "Leased" is with a loan to one
//! source on every key, as after a flush with claims.
//!
//! `WEIR_BOOKS_MILLIONS` gives another number of keys, in millions.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "it measures how long something takes; a bench that cannot measure ends at once"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use limiter::key::{CounterKey, HashSeed, PARTITIONS};
use limiter::ledger::{Journal, Ledger};
use limiter::ruleset::RuleSet;
use limiter::time::{Micros, Timestamp};
use weir_tests::aggregator::Aggregator;
use weir_tests::counting::{Counting, bytes_held};
use weir_tests::flush::{Claims, Flusher, RULES, keys, rule_id};
use weir_tests::http::Connection;
use weir_tests::measure::{machine, number, percentile, resident_bytes, thread_time};
use weir_tests::rules::per_header;
use weir_tests::wait::wait_until;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Keys in one message when books are filled: as many as a body may hold.
const KEYS_A_MESSAGE: usize = 100_000;

/// Deltas in a flush of an ordinary source.
const DELTAS: usize = 1_000;

/// Takes a snapshot as soon as there is anything to take one of.
const SNAPSHOT_SOON: [&str; 2] = ["--snapshot-log-bytes", "4096"];

fn main() {
    println!("{}", machine());
    let millions = match number("WEIR_BOOKS_MILLIONS", 0) {
        0 => vec![1, 5],
        given => vec![given],
    };
    for millions in millions {
        let keys = keys(usize::try_from(millions).unwrap_or(1) * 1_000_000);
        println!("\n{millions} million keys");
        in_process(&keys);
        as_a_service(&keys);
    }
}

/// A log that nobody reads.
struct NoLog(u64);

impl Journal for NoLog {
    fn append(&mut self, _record: &[u8]) -> u64 {
        self.0 += 1;
        self.0
    }
}

fn in_process(keys: &[CounterKey]) {
    let now = now();
    let before = bytes_held();
    let mut ledger = Ledger::new([1, 2, 3, 4]);
    let mut log = NoLog(0);
    ledger.set_rules(rules(1), now, &mut log);
    let mut source = Flusher::new(1);
    source.revision = 1;
    let growing = fill(&mut ledger, &mut log, &mut source, keys, Claims::None, now);
    let held = (bytes_held() - before) as f64;
    row("memory, bytes a key", held / keys.len() as f64);
    steps("flush of 1 000 new keys, ms of CPU", &growing);
    steps("copy of a partition for a snapshot", &snapshot(&ledger));
    let sweep = |ledger: &mut Ledger, now| -> Vec<f64> {
        let mut took = Vec::new();
        for partition in 0..PARTITIONS {
            let mut more = true;
            while more {
                took.push(step(|| more = ledger.sweep(partition, now)));
            }
        }
        took
    };
    steps("step of a sweep", &sweep(&mut ledger, now));
    let leasing = fill(&mut ledger, &mut log, &mut source, keys, Claims::All, now);
    let held = (bytes_held() - before) as f64;
    row("memory, leased, bytes a key", held / keys.len() as f64);
    steps("flush of 1 000 keys with claims", &leasing);
    steps("step of a sweep, leased", &sweep(&mut ledger, now));
    let took = step(|| ledger.set_rules(rules(2), now, &mut log));
    steps("new rules, every key leased", &[took]);
    let _ = fill(&mut ledger, &mut log, &mut source, keys, Claims::All, now);
    let later = now.after(Micros::from_secs(120));
    steps("step of a sweep, leases over", &sweep(&mut ledger, later));
    let long_after = now.after(Micros::from_secs(3 * 86_400));
    steps(
        "step of a sweep, all spent",
        &sweep(&mut ledger, long_after),
    );
}

/// Counts a hit of every key. Returns what each flush took.
fn fill(
    ledger: &mut Ledger,
    log: &mut NoLog,
    source: &mut Flusher,
    keys: &[CounterKey],
    claims: Claims,
    now: Timestamp,
) -> Vec<f64> {
    source.revision = ledger.rules().revision;
    let rule = rule_id();
    let flushes = strided(keys, keys.len() / DELTAS);
    let took = flushes.map(|keys| {
        let message = source.message(rule, &keys, claims);
        step(|| drop(ledger.sync(message, now, log).expect("a good message")))
    });
    took.collect()
}

/// Cuts sorted keys into so many flushes, each over all partitions.
fn strided(keys: &[CounterKey], flushes: usize) -> impl Iterator<Item = Vec<CounterKey>> {
    let flushes = flushes.max(1);
    (0..flushes).map(move |first| keys.iter().skip(first).step_by(flushes).copied().collect())
}

/// Copies every partition, as the ledger's task does.
fn snapshot(ledger: &Ledger) -> Vec<f64> {
    let copy = |partition| {
        let mut chunks = Vec::new();
        step(|| {
            let _ = ledger.snapshot(partition, &mut |chunk| chunks.push(chunk.to_vec()));
        })
    };
    (0..PARTITIONS).map(copy).collect()
}

fn as_a_service(keys: &[CounterKey]) {
    let mut weir = Aggregator::start(RULES);
    let empty = memory(&weir);
    let mut source = Flusher::new(1);
    let mut connection = Connection::open(weir.address()).expect("the aggregator listens");
    for keys in strided(keys, keys.len() / KEYS_A_MESSAGE) {
        let message = source.message(rule_id(), &keys, Claims::None);
        source.send(&mut connection, &message);
    }
    let grown = (memory(&weir) - empty) / keys.len() as f64;
    row("service: resident, bytes a key", grown);
    row("service: start from the log, s", restart(&mut weir, &[]));
    pauses(&weir, "service: ask, ms, nothing else on", |began| {
        began.elapsed() > Duration::from_secs(3)
    });
    let _ = restart(&mut weir, &SNAPSHOT_SOON);
    pauses(&weir, "service: ask, ms, while a snapshot runs", |_| {
        taken(&weir) > 0.0
    });
    row("service: start from a snapshot, s", restart(&mut weir, &[]));
    let grown = (memory(&weir) - empty) / keys.len() as f64;
    row("service: resident after that, bytes a key", grown);
}

/// Asks again and again, without hits, until it is over, and tells how long the
/// answers took. No answer waits for the disk.
fn pauses(weir: &Aggregator, name: &str, over: impl Fn(Instant) -> bool) {
    let (began, stop) = (Instant::now(), AtomicBool::new(false));
    let took = thread::scope(|scope| {
        let asking = scope.spawn(|| ask_until(weir, &stop));
        wait_until("it is over", || over(began));
        stop.store(true, Relaxed);
        asking.join().expect("the asking ends")
    });
    steps(name, &took);
}

fn ask_until(weir: &Aggregator, stop: &AtomicBool) -> Vec<f64> {
    let mut source = Flusher::new(2);
    let mut connection = Connection::open(weir.address()).expect("the aggregator listens");
    let mut took = Vec::new();
    while !stop.load(Relaxed) {
        let message = source.message(rule_id(), &[], Claims::None);
        let began = Instant::now();
        let _ = source.send(&mut connection, &message);
        took.push(began.elapsed().as_secs_f64() * 1e3);
        thread::sleep(Duration::from_millis(1));
    }
    took
}

/// Kills it, starts it again and returns how long that took, in seconds.
fn restart(weir: &mut Aggregator, arguments: &[&str]) -> f64 {
    weir.kill();
    let began = Instant::now();
    weir.restart_with(arguments);
    began.elapsed().as_secs_f64()
}

fn taken(weir: &Aggregator) -> f64 {
    let samples = weir.metrics();
    samples.map_or(0.0, |samples| {
        samples.sum_or_zero("weir_snapshots_total", &[])
    })
}

fn memory(weir: &Aggregator) -> f64 {
    weir.process_id().map_or(0, resident_bytes) as f64
}

fn rules(revision: u64) -> Arc<RuleSet> {
    let rules = vec![per_header("a", "x-api-key", 1_000_000_000, 86_400)];
    let set = RuleSet::new("bench", revision, Vec::new(), HashSeed::default(), rules);
    Arc::new(set.expect("valid rules"))
}

/// Processor time of a step, in milliseconds.
fn step(work: impl FnOnce()) -> f64 {
    let before = thread_time();
    work();
    thread_time().saturating_sub(before).as_secs_f64() * 1e3
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

fn row(name: &str, value: f64) {
    println!("{name:<44} {value:>10.2}");
}

fn steps(name: &str, took: &[f64]) {
    let [median, most, longest] = [500, 990, 1_000].map(|part| percentile(took, part));
    println!(
        "{name:<44} {median:>10.2} median {most:>9.2} p99 {longest:>9.2} longest, of {}",
        took.len()
    );
}
