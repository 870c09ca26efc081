//! Adds and checks, one a request: Weir over HTTP beside Redis (INCR and the usual
//! script, `appendfsync` everysec and always) and PostgreSQL (INSERT ... ON
//! CONFLICT ... RETURNING), each on a fresh directory of the same disk.
//!
//! One client thread asks over 1, 16 and 256 connections, each question as soon as
//! the last is answered: all for one key, or spread over 100 000; and over 64, for one
//! key or 64. "Many" are 100 adds in one request or pipeline. All servers run at once
//! and are asked in turn, in another order each time, the disk synced before each.
//!
//! `WEIR_COUNTERS_ROUNDS` and `WEIR_COUNTERS_MS` (a candidate and round) change the
//! effort. Temporary folders (`TMPDIR`) have to be on the disk in question.

#![expect(
    clippy::expect_used,
    reason = "a bench that cannot measure ends at once"
)]

mod protocols;

use std::net::SocketAddr;
use std::time::Duration;

use protocols::{Http, Prepared, Resp};
use weir_tests::aggregator::Aggregator;
use weir_tests::measure::{machine, number, percentile, spread};
use weir_tests::postgres_server::Postgres;
use weir_tests::redis_server::Redis;
use weir_tests::talk::{Protocol, talk};

/// Connections at once.
const CONNECTIONS: [usize; 3] = [1, 16, 256];

/// Adds in one request, where there are many.
const MANY: u64 = 100;

/// Keys, where a load is spread.
const SPREAD: u64 = 100_000;

const RULES: &str = "\
version: 1
domain: bench
rules:
  - { name: durable, key: [header.x-key], limit: 1000000000, window: 1h, algorithm: fixed_window }
  - name: fast
    key: [header.x-key]
    limit: 1000000000
    window: 1h
    algorithm: fixed_window
    commit: fast
";

/// A fixed window, as it is written for Redis everywhere.
const SCRIPT: &str = "\
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if count > tonumber(ARGV[1]) then return 0 end
return 1";

const TABLE: &str = "create table counters (id text primary key, value bigint not null)";

const UPSERT: &str = "insert into counters values ($1, 1) \
     on conflict (id) do update set value = counters.value + 1 returning value";

struct Candidate {
    what: &'static str,
    name: &'static str,
    to: SocketAddr,
    protocol: Box<dyn Protocol>,
    loads: Vec<Load>,
}

/// What came of one number of connections and keys, a value a round.
#[derive(Default)]
struct Load {
    per_second: Vec<f64>,
    latencies: Vec<f64>,
}

fn main() {
    let rounds = number("WEIR_COUNTERS_ROUNDS", 3);
    let time = Duration::from_millis(number("WEIR_COUNTERS_MS", 1_000));
    let weir = Aggregator::start(RULES);
    let redis = ["everysec", "always"].map(Redis::start);
    let postgres = Postgres::start(300, TABLE);
    let mut candidates = of_weir(&weir);
    for (name, redis) in ["redis, everysec", "redis, always"].into_iter().zip(&redis) {
        match redis {
            Some(redis) => candidates.extend(of_redis(name, redis)),
            None => println!("redis-server is not installed"),
        }
    }
    match &postgres {
        Some(postgres) => candidates.push(of_postgres(postgres)),
        None => println!("postgresql is not installed"),
    }
    let mut chance = oorandom::Rand64::new(7);
    for _ in 0..rounds {
        for (place, (connections, keys)) in loads().into_iter().enumerate() {
            for whose in shuffled(candidates.len(), &mut chance) {
                let Some(candidate) = candidates.get_mut(whose) else {
                    continue;
                };
                // What one leaves for the disk to do must not slow the next.
                rustix::fs::sync();
                let next = || chance.rand_range(0..keys);
                let took = talk(&*candidate.protocol, candidate.to, connections, time, next);
                if let Some(load) = candidate.loads.get_mut(place) {
                    load.per_second.push(took.len() as f64 / time.as_secs_f64());
                    load.latencies.extend(took);
                }
            }
        }
    }
    report(&candidates);
}

/// The first so many numbers, in any order.
fn shuffled(count: usize, chance: &mut oorandom::Rand64) -> Vec<usize> {
    let mut drawn: Vec<(u64, usize)> = (0..count).map(|place| (chance.rand_u64(), place)).collect();
    drawn.sort_unstable();
    drawn.into_iter().map(|(_, place)| place).collect()
}

/// Connections and keys; of 64 each, whether a key that all want is slow.
fn loads() -> Vec<(usize, u64)> {
    let of = |keys| CONNECTIONS.map(|connections| (connections, keys));
    let hot = [(64, 1), (64, 64)];
    [of(1).as_slice(), &of(SPREAD), &hot].concat()
}

fn candidate(
    what: &'static str,
    name: &'static str,
    to: SocketAddr,
    protocol: impl Protocol + 'static,
) -> Candidate {
    Candidate {
        what,
        name,
        to,
        protocol: Box::new(protocol),
        loads: loads().iter().map(|_| Load::default()).collect(),
    }
}

fn of_weir(weir: &Aggregator) -> Vec<Candidate> {
    let (add, check) = ("/v1/counter/increment", "/v1/ratelimit/check");
    let ask = |what, name, path, body| {
        let many = if what == "many" { MANY } else { 1 };
        candidate(what, name, weir.address(), Http { path, body, many })
    };
    let one = r#"{"counter_id":"{key}","delta":1}"#;
    let [durable, fast] = [
        r#"{"rule":"durable","key":"{key}"}"#,
        r#"{"rule":"fast","key":"{key}"}"#,
    ];
    vec![
        ask("add", "weir", add, one),
        ask("many", "weir", add, one),
        ask("check", "weir, durable", check, durable),
        ask("check", "weir, fast", check, fast),
    ]
}

fn of_redis(name: &'static str, redis: &Redis) -> [Candidate; 3] {
    let mut client = redis.connect().expect("redis listens");
    let script = client.call(&[&[b"SCRIPT", b"LOAD", SCRIPT.as_bytes()]]);
    let script = script.expect("the script loads");
    let ask = |what, words: &[&str], many| {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        candidate(what, name, redis.address(), Resp { words, many })
    };
    let add = ["INCR", "{key}"];
    let (key, limit) = ("window:{key}", "1000000000");
    let check = ["EVALSHA", &script, "1", key, limit, "3600000"];
    [
        ask("add", &add, 1),
        ask("many", &add, MANY),
        ask("check", &check, 1),
    ]
}

fn of_postgres(postgres: &Postgres) -> Candidate {
    candidate("add", "postgresql", postgres.address(), Prepared(UPSERT))
}

fn report(candidates: &[Candidate]) {
    println!("{}", machine());
    println!(
        "{:<6} {:<16} {:>7} {:>6} {:>22} {:>8} {:>8} {:>8}",
        "", "", "keys", "conns", "a second (range)", "p50 ms", "p99", "p99.9"
    );
    for what in ["add", "many", "check"] {
        for (place, (connections, keys)) in loads().into_iter().enumerate() {
            for candidate in candidates.iter().filter(|one| one.what == what) {
                let Some(load) = candidate.loads.get(place) else {
                    continue;
                };
                let latency = |thousandths| percentile(&load.latencies, thousandths);
                println!(
                    "{what:<6} {:<16} {keys:>7} {connections:>6} {:>22} {:>8.2} {:>8.2} {:>8.2}",
                    candidate.name,
                    spread(&load.per_second),
                    latency(500),
                    latency(990),
                    latency(999),
                );
            }
        }
    }
}
