//! What JavaScript calls, and nothing more. Times are milliseconds since the Unix
//! epoch, positions of records whole numbers: JavaScript has one kind of number.
//!
//! A function that may refuse returns 1 then, and the outbox says why.

#![expect(
    unsafe_code,
    reason = "an exported name is unsafe to choose: the linker knows only one of each"
)]

use std::sync::Once;

use super::abi::{self, Level};
use super::isolate::Objects;
use super::{above, isolate, object};

/// Says of a panic where it was: all that is left to do before the trap.
fn tell_of_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| abi::log(Level::Error, &info.to_string())));
    });
}

/// Starts a source. In the inbox: 40 random bytes, settings as JSON, and rules or
/// nothing. `above` is 1 where the objects have their rules from an aggregator above.
#[unsafe(no_mangle)]
extern "C" fn isolate_start(
    config_len: usize,
    rules_len: usize,
    shards: u32,
    above: u32,
    now: f64,
) -> u32 {
    tell_of_panics();
    let len = config_len.saturating_add(rules_len).saturating_add(40);
    let bytes = inbox(len);
    let (seeds, rest) = bytes.split_at_checked(40).unwrap_or_default();
    let (config, rules) = rest.split_at_checked(config_len).unwrap_or_default();
    told(isolate::start(
        numbers(seeds),
        config,
        rules,
        objects(shards, above > 0),
        abi::instant(now),
    ))
}

/// A request has arrived: 0 it goes on, 1 it waits, 2 it is answered with the
/// outbox.
#[unsafe(no_mangle)]
extern "C" fn isolate_request(id: u32, now: f64) -> u32 {
    isolate::request(id, abi::instant(now)) as u32
}

/// 1: the response to a request that may pass is to be shown.
#[unsafe(no_mangle)]
extern "C" fn isolate_awaits(id: u32) -> u32 {
    u32::from(isolate::awaits(id))
}

/// Here it is. Headers that it is to have are in the outbox.
#[unsafe(no_mangle)]
extern "C" fn isolate_response(id: u32, status: u32, now: f64) {
    let status = u16::try_from(status).unwrap_or_default();
    abi::put(isolate::response(id, status, abi::instant(now)));
}

/// There was none.
#[unsafe(no_mangle)]
extern "C" fn isolate_forget(id: u32) {
    isolate::forget(id);
}

/// A call has ended, with an answer in the inbox or (-1) without. 1: the object
/// runs older rules, and is to be asked again once it has [`isolate_rules`].
#[unsafe(no_mangle)]
extern "C" fn isolate_answer(token: u32, len: i32, now: f64) -> u32 {
    u32::from(!isolate::answer(token, abi::taken(len), abi::instant(now)))
}

/// Time has passed.
#[unsafe(no_mangle)]
extern "C" fn isolate_tick(now: f64) {
    isolate::tick(abi::instant(now));
}

/// What to do next, until it is 0: see `isolate::Todo`.
#[unsafe(no_mangle)]
extern "C" fn isolate_todo(now: f64) -> u32 {
    isolate::todo(abi::instant(now)) as u32
}

/// When to tick and to ask what to do at the latest.
#[unsafe(no_mangle)]
extern "C" fn isolate_due() -> f64 {
    abi::millis(isolate::due())
}

/// Puts what was counted since the last call into the outbox.
#[unsafe(no_mangle)]
extern "C" fn isolate_report(now: f64) {
    abi::put(isolate::report(abi::instant(now)));
}

/// Puts the rules in force into the outbox.
#[unsafe(no_mangle)]
extern "C" fn isolate_rules() {
    abi::put(isolate::rules().unwrap_or_default());
}

/// Makes empty books, whose clock begins at `latest` or later. In the inbox: 32
/// random bytes.
#[unsafe(no_mangle)]
extern "C" fn object_start(latest: f64) {
    tell_of_panics();
    object::start(numbers(&inbox(32)), abi::instant(latest));
}

/// Takes back a chunk of a snapshot.
#[unsafe(no_mangle)]
extern "C" fn object_restore(partition: u32, contains: f64, len: usize) -> u32 {
    told(object::restore(partition, whole(contains), &inbox(len)))
}

/// Takes back a record.
#[unsafe(no_mangle)]
extern "C" fn object_replay(position: f64, len: usize) -> u32 {
    told(object::replay(whole(position), &inbox(len)))
}

/// Puts rules in force, if they are newer.
#[unsafe(no_mangle)]
extern "C" fn object_enforce(len: usize, now: f64) -> u32 {
    told(object::enforce(&inbox(len), abi::instant(now)).map(drop))
}

/// Counts a message; its answer is in the outbox.
#[unsafe(no_mangle)]
extern "C" fn object_sync(len: usize, now: f64) -> u32 {
    told(object::sync(&inbox(len), abi::instant(now)).map(abi::put))
}

/// Forgets what no longer matters; 1: there is more.
#[unsafe(no_mangle)]
extern "C" fn object_sweep(partition: u32, now: f64) -> u32 {
    u32::from(object::sweep(partition, abi::instant(now)))
}

/// Hands over a partition.
#[unsafe(no_mangle)]
extern "C" fn object_snapshot(partition: u32) {
    object::snapshot(partition);
}

/// The position of the last record.
#[unsafe(no_mangle)]
#[expect(
    clippy::cast_precision_loss,
    reason = "there are never 2^53 records of one object"
)]
extern "C" fn object_position() -> f64 {
    object::position() as f64
}

/// Puts the rules in force into the outbox.
#[unsafe(no_mangle)]
extern "C" fn object_rules() {
    abi::put(object::rules());
}

/// Puts what the books say into the outbox.
#[unsafe(no_mangle)]
extern "C" fn object_status(now: f64) {
    abi::put(object::status(abi::instant(now)));
}

/// Joins the regions of the aggregator above, under the name in the inbox. Returns which
/// life this is: later than `before`. `regions`: how many it knew of then; 0: not known.
#[unsafe(no_mangle)]
extern "C" fn object_join(len: usize, before: f64, regions: u32, now: f64) -> f64 {
    let name = String::from_utf8_lossy(&inbox(len)).into_owned();
    let regions = (regions > 0).then_some(regions);
    let life = above::join(name, whole(before), regions, abi::instant(now));
    above::number(life.unwrap_or_default())
}

/// Puts the next message for the aggregator above into the outbox, and returns its
/// number; 0: none is due.
#[unsafe(no_mangle)]
extern "C" fn object_report(now: f64) -> f64 {
    above::put(above::report(abi::instant(now)))
}

/// Takes the answer to such a message, in the inbox, or (-1) that there was none. 1: it is
/// refused, 2: it has put rules of a lower revision in force.
#[unsafe(no_mangle)]
extern "C" fn object_heard(id: f64, len: i32, now: f64) -> u32 {
    match above::hear(whole(id), abi::taken(len), abi::instant(now)) {
        Ok(lower) => 2 * u32::from(lower),
        Err(why) => told(Err(why)),
    }
}

/// How many regions the aggregator above knows of; 0: not known.
#[unsafe(no_mangle)]
extern "C" fn object_regions(now: f64) -> u32 {
    above::regions(abi::instant(now))
}

/// When to ask for the next message at the latest.
#[unsafe(no_mangle)]
extern "C" fn object_due() -> f64 {
    abi::millis(above::due())
}

fn objects(shards: u32, above: bool) -> Option<Objects> {
    (shards > 0).then_some(Objects { shards, above })
}

fn inbox(len: usize) -> Vec<u8> {
    i32::try_from(len)
        .ok()
        .and_then(abi::taken)
        .unwrap_or_default()
}

/// Random numbers of random bytes; zeros if there are too few.
fn numbers<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let chunks = bytes.as_chunks::<8>().0.iter();
    let numbers: Vec<u64> = chunks.map(|chunk| u64::from_le_bytes(*chunk)).collect();
    numbers.try_into().unwrap_or([0; N])
}

fn told(outcome: Result<(), String>) -> u32 {
    match outcome {
        Ok(()) => 0,
        Err(why) => {
            abi::put(why.into_bytes());
            1
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position or a message's number is whole, and never negative"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
