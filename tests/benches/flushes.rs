//! Durable flushes: 1 000 deltas each, over a million keys that are as popular as
//! Zipf has it, each acknowledged once it is synced; beside Redis with
//! `appendfsync always`, on the same disk, in the same run.
//!
//! Each source sends its next flush when the last is acknowledged. Weir applies a
//! flush once however often it comes; so does the script in Redis, which keeps
//! each source's last sequence. The plain pipeline (INCRBY and EXPIREAT for each
//! delta) does not. All of them run at once and are loaded in turn, round after
//! round; so do one aggregator and three over a Valkey of the same kind that they share.
//!
//! `WEIR_FLUSHES_ROUNDS` and `WEIR_FLUSHES_SECONDS` (a candidate and round) change
//! the effort. Temporary folders (`TMPDIR`) have to be on the disk in question.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "it measures how long something takes; a bench that cannot measure ends at once"
)]

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use limiter::key::CounterKey;
use weir_tests::aggregator::Aggregator;
use weir_tests::flush::{Claims, Flusher, RULES, key, rule_id};
use weir_tests::http::Connection;
use weir_tests::measure::{machine, number, percentile, spread};
use weir_tests::redis_server::{Redis, write};
use weir_tests::wait::wait_until;

/// Deltas of one flush.
const DELTAS: usize = 1_000;

/// Keys there are.
const KEYS: u64 = 1_000_000;

/// Different sets of keys that flushes are made of.
const SETS: usize = 256;

/// Sources that flush at the same time.
const SOURCES: [usize; 2] = [1, 16];

/// Counts a flush whole or not at all, and once.
const SCRIPT: &str = "\
if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then return 0 end
for i = 2, #KEYS do
  redis.call('INCRBY', KEYS[i], 1)
  redis.call('EXPIREAT', KEYS[i], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1])
return 1";

/// When counters in Redis expire.
const EXPIRES: &[u8] = b"4102444800";

type Sets = Vec<Vec<CounterKey>>;

/// Sends one flush after the other.
type Sender<'a> = Box<dyn FnMut(&[CounterKey]) + Send + 'a>;

struct Candidate<'a> {
    name: &'static str,
    open: Box<dyn Fn(u64) -> Sender<'a> + 'a>,
    results: Vec<Outcome>,
}

/// What a candidate did with so many sources, a value a round.
#[derive(Default)]
struct Outcome {
    per_second: Vec<f64>,
    /// Of every flush of all rounds, in milliseconds.
    latencies: Vec<f64>,
}

fn main() {
    let rounds = number("WEIR_FLUSHES_ROUNDS", 5);
    let time = Duration::from_secs(number("WEIR_FLUSHES_SECONDS", 3));
    let sets = sets();
    let weir = Aggregator::start(RULES);
    let (one, three) = (Shared::start(1), Shared::start(3));
    let redis = Redis::start("always");
    if redis.is_none() {
        println!("redis-server is not installed: Weir alone is measured");
    }
    let mut candidates = vec![
        candidate("weir", |source| weir_sender(&weir, source, Claims::None)),
        candidate("weir, leases granted too", |source| {
            weir_sender(&weir, source, Claims::All)
        }),
        candidate("weir, one over valkey", |source| one.sender(source)),
        candidate("weir, three over valkey", |source| three.sender(source)),
    ];
    if let Some(redis) = &redis {
        candidates.push(candidate("redis, script", |source| script(redis, source)));
        candidates.push(candidate("redis, pipeline", |_| pipeline(redis)));
    }
    let mut source = 0;
    for _ in 0..rounds {
        for (place, sources) in SOURCES.into_iter().enumerate() {
            for candidate in &mut candidates {
                source += 100;
                let senders = (0..sources as u64).map(|n| (candidate.open)(source + n));
                let flushed = load(senders.collect(), &sets, time);
                if let Some(outcome) = candidate.results.get_mut(place) {
                    outcome.add(flushed, time);
                }
            }
        }
    }
    report(&candidates);
}

/// Aggregators that share a store.
struct Shared {
    members: Vec<Aggregator>,
    _store: Redis,
}

impl Shared {
    fn start(members: usize) -> Self {
        let store = Redis::valkey("always");
        let url = format!("redis://{}", store.address());
        let member = |_| Aggregator::start_with(RULES, &["--store", &url]);
        let members: Vec<Aggregator> = (0..members).map(member).collect();
        wait_until("each has its part", || {
            let owned = members.iter().filter_map(Aggregator::metrics);
            let owned = owned.map(|metrics| metrics.sum_or_zero("weir_groups_owned", &[]));
            let owned: Vec<f64> = owned.collect();
            let most = 16_usize.div_ceil(members.len()) as f64;
            owned.iter().sum::<f64>() > 15.5 && owned.iter().all(|owned| *owned <= most)
        });
        Self {
            members,
            _store: store,
        }
    }

    /// A source of one of them.
    fn sender(&self, source: u64) -> Sender<'_> {
        let place = source % self.members.len() as u64;
        let mut members = self.members.iter().zip(0..);
        let member = members.find(|(_, n)| *n == place).map(|(member, _)| member);
        let member = member.expect("there are members");
        weir_sender(member, source, Claims::None)
    }
}

fn candidate<'a>(name: &'static str, open: impl Fn(u64) -> Sender<'a> + 'a) -> Candidate<'a> {
    Candidate {
        name,
        open: Box::new(open),
        results: SOURCES.iter().map(|_| Outcome::default()).collect(),
    }
}

/// Keys for flushes: each set has every key once, as a source's flush does.
fn sets() -> Sets {
    let mut sum = 0.0;
    let shares = (1..=KEYS).map(|rank| {
        sum += 1.0 / rank as f64;
        sum
    });
    let shares: Vec<f64> = shares.collect();
    let mut chance = oorandom::Rand64::new(3);
    let mut draw = || {
        let at = chance.rand_float() * sum;
        shares.partition_point(|share| *share < at) as u64
    };
    let mut set = || {
        let mut ranks = HashSet::new();
        while ranks.len() < DELTAS {
            ranks.insert(draw());
        }
        let mut keys: Vec<CounterKey> = ranks.into_iter().map(key).collect();
        keys.sort_unstable();
        keys
    };
    (0..SETS).map(|_| set()).collect()
}

fn weir_sender(weir: &Aggregator, source: u64, claims: Claims) -> Sender<'_> {
    let rule = rule_id();
    let mut connection = Connection::open(weir.address()).expect("the aggregator listens");
    let mut flusher = Flusher::new(source);
    flusher.revision = 1;
    Box::new(move |keys| {
        let message = flusher.message(rule, keys, claims);
        flusher.send(&mut connection, &message);
    })
}

fn script(redis: &Redis, source: u64) -> Sender<'_> {
    let mut client = redis.connect().expect("redis listens");
    let script = client.call(&[&[b"SCRIPT", b"LOAD", SCRIPT.as_bytes()]]);
    let script = script.expect("the script loads");
    let identity = format!("source:{source}");
    let mut sequence = 0_u64;
    Box::new(move |keys| {
        sequence += 1;
        let (count, sequence) = ((keys.len() + 1).to_string(), sequence.to_string());
        let names: Vec<[u8; 16]> = keys.iter().map(|key| key.to_bytes()).collect();
        let mut command: Vec<&[u8]> = vec![b"EVALSHA", script.as_bytes(), count.as_bytes()];
        command.push(identity.as_bytes());
        command.extend(names.iter().map(<[u8; 16]>::as_slice));
        command.extend([sequence.as_bytes(), EXPIRES]);
        let counted = client.call(&[&command]).expect("redis counts");
        assert_eq!(counted, ":1", "a flush was taken for an old one");
    })
}

fn pipeline(redis: &Redis) -> Sender<'_> {
    let mut client = redis.connect().expect("redis listens");
    Box::new(move |keys| {
        let mut out = Vec::new();
        for key in keys {
            let name = key.to_bytes();
            write(&mut out, &[b"INCRBY", &name, b"1"]);
            write(&mut out, &[b"EXPIREAT", &name, EXPIRES]);
        }
        client.send(&out, keys.len() * 2).expect("redis counts");
    })
}

/// Runs all senders for so long. Returns how long each flush took.
fn load(senders: Vec<Sender<'_>>, sets: &Sets, time: Duration) -> Vec<f64> {
    let end = Instant::now() + time;
    thread::scope(|scope| {
        let threads: Vec<_> = senders
            .into_iter()
            .enumerate()
            .map(|(n, sender)| scope.spawn(move || flush_until(end, sender, sets, n * 17)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .flat_map(|took| took.expect("a source ends"))
            .collect()
    })
}

fn flush_until(end: Instant, mut send: Sender<'_>, sets: &Sets, first: usize) -> Vec<f64> {
    let mut took = Vec::new();
    for keys in sets.iter().cycle().skip(first) {
        let began = Instant::now();
        if began >= end {
            break;
        }
        send(keys);
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    took
}

impl Outcome {
    fn add(&mut self, took: Vec<f64>, time: Duration) {
        let deltas = (took.len() * DELTAS) as f64;
        self.per_second.push(deltas / time.as_secs_f64() / 1e3);
        self.latencies.extend(took);
    }
}

fn report(candidates: &[Candidate<'_>]) {
    println!("{DELTAS} deltas a flush over {KEYS} keys; {}", machine());
    println!(
        "{:<26} {:>7} {:>26} {:>10} {:>8} {:>8}",
        "", "sources", "thousand deltas/s (range)", "flushes", "p50 ms", "p99 ms"
    );
    for (place, sources) in SOURCES.into_iter().enumerate() {
        for candidate in candidates {
            let Some(outcome) = candidate.results.get(place) else {
                continue;
            };
            println!(
                "{:<26} {sources:>7} {:>26} {:>10} {:>8.1} {:>8.1}",
                candidate.name,
                spread(&outcome.per_second),
                outcome.latencies.len(),
                percentile(&outcome.latencies, 500),
                percentile(&outcome.latencies, 990),
            );
        }
    }
}
