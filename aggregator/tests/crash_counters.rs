//! SIGKILL, again and again, under adds: what was told stays, and each add that has
//! an idempotency key counts once, however often it was sent.
//!
//! Clients add with keys, which they send until they are answered, and without,
//! which they send once. Counters of the first kind must hold exactly what was
//! sent; those of the second at least what was acknowledged, and no more than was
//! sent. The seed is printed first; `WEIR_CRASH_SEED` repeats it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking, and shares its helpers"
)]

mod common;

use std::{collections::HashMap, net::SocketAddr, sync::Arc, thread};

use common::{client::get, killed::Region, messages::RULES, random::Random};
use serde_json::{Value, json};

const ROUNDS: u64 = 16;
const CLIENTS: u64 = 4;
const COUNTERS: u64 = 6;
const PATH: &str = "/v1/counter/increment";

#[test]
fn every_acknowledged_add_counts_once_however_often_the_service_is_killed() {
    let seed = std::env::var("WEIR_CRASH_SEED").map_or(20_262, |seed| seed.parse().unwrap());
    println!("WEIR_CRASH_SEED={seed}");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rules.yaml"), RULES).unwrap();
    let region = Arc::new(Region::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let region = Arc::clone(&region);
            thread::spawn(move || Client::new(seed, number).run(&region))
        })
        .collect();
    region.kill_again_and_again(ROUNDS, dir.path(), &mut Random::new(seed));
    let (mut child, address) = region.start_and_close(dir.path());
    let clients: Vec<Client> = clients
        .into_iter()
        .map(|client| client.join().unwrap())
        .collect();
    let adds: u64 = clients.iter().map(|client| client.keys).sum();
    println!("{adds} adds with a key were acknowledged");
    assert!(adds > 100, "too little happened to tell anything");
    for counter in 0..COUNTERS {
        let sum = |of: fn(&Client) -> &HashMap<u64, i64>| -> i64 {
            clients
                .iter()
                .filter_map(|client| of(client).get(&counter))
                .sum()
        };
        let keyed = value(address, &format!("keyed-{counter}"));
        assert_eq!(keyed, sum(|client| &client.keyed), "keyed-{counter}");
        let plain = value(address, &format!("plain-{counter}"));
        let (least, most) = (sum(|client| &client.acked), sum(|client| &client.sent));
        assert!((least..=most).contains(&plain), "{least} {plain} {most}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn value(address: SocketAddr, name: &str) -> i64 {
    let response = get(address, &format!("/v1/counter/{name}"));
    if response.status == 404 {
        0
    } else {
        response.json()["value"].as_i64().unwrap()
    }
}

/// Someone who adds, and remembers what they were told.
struct Client {
    number: u64,
    random: Random,
    /// Adds with a key so far.
    keys: u64,
    /// What was added with keys, by counter.
    keyed: HashMap<u64, i64>,
    /// What was acknowledged without a key, and what was sent.
    acked: HashMap<u64, i64>,
    sent: HashMap<u64, i64>,
    /// An earlier add, and what it was told.
    earlier: Option<(Value, Vec<u8>)>,
    /// The most that was ever read of a counter.
    read: HashMap<u64, i64>,
}

impl Client {
    fn new(seed: u64, number: u64) -> Self {
        Self {
            number,
            random: Random::new(seed ^ (number + 1)),
            keys: 0,
            keyed: HashMap::new(),
            acked: HashMap::new(),
            sent: HashMap::new(),
            earlier: None,
            read: HashMap::new(),
        }
    }

    fn run(mut self, region: &Region) -> Self {
        while !region.is_closing() {
            match self.random.below(4) {
                0 => self.add_plain(region),
                1 => self.read(region),
                _ => self.add_keyed(region),
            }
        }
        self
    }

    fn add_keyed(&mut self, region: &Region) {
        let (counter, delta) = (self.random.below(COUNTERS), 1 + self.delta());
        self.keys += 1;
        let add = json!({
            "counter_id": format!("keyed-{counter}"),
            "delta": delta,
            "idempotency_key": format!("{}-{}", self.number, self.keys),
        });
        let told = region.send_until_answered(PATH, add.to_string().as_bytes());
        *self.keyed.entry(counter).or_default() += delta;
        if let Some((add, told)) = &self.earlier {
            let again = region.send_until_answered(PATH, add.to_string().as_bytes());
            assert_eq!(&again.body, told);
            assert!(again.header("idempotent-replayed").is_some());
        }
        if self.random.below(8) == 0 {
            self.earlier = Some((add, told.body));
        }
    }

    fn add_plain(&mut self, region: &Region) {
        let (counter, delta) = (self.random.below(COUNTERS), 1 + self.delta());
        let add = json!({"counter_id": format!("plain-{counter}"), "delta": delta});
        *self.sent.entry(counter).or_default() += delta;
        if region
            .try_send("POST", PATH, add.to_string().as_bytes())
            .is_some()
        {
            *self.acked.entry(counter).or_default() += delta;
        }
    }

    /// What was read once is never taken back.
    fn read(&mut self, region: &Region) {
        let counter = self.random.below(COUNTERS);
        let path = format!("/v1/counter/keyed-{counter}");
        let Some(response) = region.try_send("GET", &path, b"") else {
            return;
        };
        let value = response.json()["value"].as_i64().unwrap_or(0);
        let most = self.read.entry(counter).or_default();
        assert!(value >= *most, "keyed-{counter} was {most}, then {value}");
        *most = value;
    }

    fn delta(&mut self) -> i64 {
        self.random.below(9).try_into().unwrap()
    }
}
