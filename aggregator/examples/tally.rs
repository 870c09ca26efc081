//! A live tally: one watches, others vote.
//!
//! The watch is a stream of server-sent events. The first tells the counter as it
//! is; changes that come faster than they are read are told as the latest of them.
//! So the sum is always right, and a slow reader holds up nobody.
//!
//! `cargo run --example tally [URL]`, the URL of `weir serve`.

use std::{
    env,
    error::Error,
    io::{BufRead, BufReader, Write},
    thread,
};

use serde::Deserialize;
use serde_json::json;

const VOTES: i64 = 20;

/// What an event tells.
#[derive(Deserialize)]
struct Counter {
    value: Option<i64>,
}

fn vote(url: &str, option: &str) -> Result<(), ureq::Error> {
    let add = json!({ "namespace": "poll", "counter_id": option });
    let path = format!("{url}/v1/counter/increment");
    ureq::post(path).send(add.to_string()).map(drop)
}

/// What the counter is, again and again; none until somebody votes.
fn sums(url: &str, option: &str) -> Result<impl Iterator<Item = Option<i64>>, Box<dyn Error>> {
    let path = format!("{url}/v1/counter/{option}/watch?namespace=poll");
    let events = ureq::get(path).call()?.into_body().into_reader();
    let lines = BufReader::new(events).lines().map_while(Result::ok);
    Ok(lines.filter_map(|line| {
        let counter: Counter = serde_json::from_str(line.strip_prefix("data:")?).ok()?;
        Some(counter.value)
    }))
}

/// Watches until everyone has voted.
pub fn run(url: &str, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let mut sums = sums(url, "coffee")?;
    writeln!(out, "so far {}", sums.next().flatten().unwrap_or(0))?;
    let votes = thread::scope(|scope| {
        let voters: Vec<_> = (0..VOTES)
            .map(|_| scope.spawn(|| vote(url, "coffee")))
            .collect();
        let votes = voters.into_iter().filter_map(|voter| voter.join().ok());
        votes.collect::<Result<Vec<()>, _>>()
    });
    votes?;
    let last = sums.find(|sum| *sum >= Some(VOTES)).flatten();
    writeln!(out, "at last {}", last.unwrap_or(0))?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1);
    let url = url.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    run(&url, &mut std::io::stdout())
}
