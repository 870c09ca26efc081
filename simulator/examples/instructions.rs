//! Counts the instructions that messages cost a region, for `simulator/src/cost.rs`:
//! `make instructions`, which takes valgrind and some minutes.
//!
//! It runs itself under callgrind, on fleets with few and with many counts a flush,
//! and on one as in `tests/cases/scale.json` but smaller, which the model is held
//! against. Given `weir` in `WEIR_BIN` it also counts what the service takes for an
//! empty message: that is HTTP, and what the model leaves out.
#![allow(
    clippy::disallowed_methods,
    reason = "it waits for a process to listen"
)]
#![allow(
    clippy::cast_precision_loss,
    reason = "instructions of a run are far below 2^53"
)]

use std::{
    collections::HashMap,
    env, fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use limiter::wire::SyncRequest;
use prost::Message;
use serde_json::Value;
use simulator::{Format, Options};

/// What of a region is counted.
const READ: &str = "simulator::region::read";
const FLUSH: &str = "Region::flush";
const ASK: &str = "Region::ask";

/// Where a service listens that is counted.
const LISTEN: &str = "127.0.0.1:18099";

/// Its rules.
const RULES: &str = "version: 1
domain: simulated
rules:
  - { name: r, key: [header.x-key], limit: 1000, window: 1m }
";

/// Seconds that each fleet runs.
const SECONDS: f64 = 4.0;

/// A fleet, as a scenario file.
fn fleet(name: &str, sources: usize, keys: usize, total_rps: usize) -> String {
    format!(
        r#"[{{"name": "{name}", "rule": {{"limit": 1000, "window_ms": 60000}},
        "pops": {sources}, "workers_per_pop": 1, "region_rtt_ms": 4,
        "region_rtt_jitter_ms": 1, "duration_s": {SECONDS}, "seed": 7, "traffic":
        {{"kind": "zipf", "keys": {keys}, "exponent": 1.0, "total_rps": {total_rps}}}}}]"#
    )
}

/// What one run has counted, and what the model says.
struct Counted {
    read: f64,
    flush: f64,
    ask: f64,
    figures: Value,
}

impl Counted {
    /// A figure of the region over the whole run.
    fn sum(&self, name: &str) -> f64 {
        let figure = self.figures.pointer(&format!("/0/regions/0/{name}"));
        figure.and_then(Value::as_f64).unwrap_or_default() * SECONDS
    }

    fn flushes(&self) -> f64 {
        self.sum("messages_per_s") - self.sum("asks_per_s")
    }

    fn bytes(&self) -> f64 {
        self.sum("flush_up_bytes_per_s") + self.sum("ask_up_bytes_per_s")
    }
}

fn main() -> Result<(), String> {
    if let Some(file) = env::args().nth(1) {
        let options = Options {
            format: Format::Json,
            ..Options::default()
        };
        print!("{}", simulator::run(Path::new(&file), &options).text);
        return Ok(());
    }
    if let Ok(weir) = env::var("WEIR_BIN") {
        let (few, many) = (serve(&weir, 500)?, serve(&weir, 2_500)?);
        println!("HTTP, a message: {:.0}", (many - few) / 2_000.0);
    }
    let few = count(&fleet("few", 200, 20_000, 1_500))?;
    let many = count(&fleet("many", 10, 20_000, 10_000))?;
    let like = count(&fleet("like", 480, 300_000, 15_000))?;
    // Two equations: flushes × a + deltas × b.
    let (few_deltas, many_deltas) = (few.sum("deltas_per_s"), many.sum("deltas_per_s"));
    let both = few.flushes() * many_deltas - many.flushes() * few_deltas;
    let flush = (few.flush * many_deltas - many.flush * few_deltas) / both;
    let delta = (many.flush * few.flushes() - few.flush * many.flushes()) / both;
    let read = (few.read + many.read) / (few.bytes() + many.bytes());
    let asks = few.sum("asks_per_s") + many.sum("asks_per_s");
    let ask = (few.ask + many.ask) / asks;
    println!("BYTE_READ {read:.1}  FLUSH {flush:.0}  DELTA {delta:.0}  ASK {ask:.0}");
    println!(
        "{:<8} {:>14} {:>14} {:>14} {:>16} {:>16}",
        "fleet", "read", "flushes", "asks", "counted", "by the model"
    );
    for (name, run) in [("few", &few), ("many", &many), ("like", &like)] {
        let all = run.read + run.flush + run.ask;
        let model = run.sum("instructions_per_s");
        println!(
            "{name:<8} {:>14.0} {:>14.0} {:>14.0} {all:>16.0} {model:>16.0}",
            run.read, run.flush, run.ask
        );
    }
    Ok(())
}

/// Instructions of a service that takes so many empty messages over one connection,
/// from its start to its end.
fn serve(weir: &str, messages: u64) -> Result<f64, String> {
    let folder = env::temp_dir().join(format!("weir-instructions-{}", std::process::id()));
    let words = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&folder).map_err(words)?;
    fs::write(folder.join("rules.yaml"), RULES).map_err(words)?;
    let mut service = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", weir])
        .args(["serve", "--listen", LISTEN, "--rules", "rules.yaml"])
        .args(["--data-dir", "data"])
        .current_dir(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(words)?;
    let mut tries = (0..900).filter_map(|_| {
        thread::sleep(Duration::from_millis(100));
        TcpStream::connect(LISTEN).ok()
    });
    let mut stream = tries.next().ok_or("the service does not listen")?;
    for message in 1..=messages {
        let body = SyncRequest {
            source: 1,
            message,
            rules_revision: 1,
            ..SyncRequest::default()
        };
        let body = body.encode_to_vec();
        let head = format!(
            "POST /v1/sync HTTP/1.1\r\nhost: weir\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream
            .write_all(&[head.as_bytes(), &body].concat())
            .map_err(words)?;
        let mut answer = [0; 4_096];
        let _ = stream.read(&mut answer).map_err(words)?;
    }
    drop(stream);
    let stop = Command::new("kill").arg(service.id().to_string()).status();
    stop.map_err(words)?;
    let mut told = String::new();
    let output = service.stderr.as_mut().ok_or("nothing is told")?;
    output.read_to_string(&mut told).map_err(words)?;
    service.wait().map_err(words)?;
    fs::remove_dir_all(&folder).map_err(words)?;
    let counted = told.lines().find(|line| line.contains("Collected"));
    let counted = counted.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    counted.ok_or(told)
}

/// Runs a fleet under callgrind.
fn count(scenario: &str) -> Result<Counted, String> {
    let folder = env::temp_dir().join(format!("weir-instructions-{}", std::process::id()));
    let (fleet, trace) = (folder.join("fleet.json"), folder.join("trace"));
    let own = env::current_exe().map_err(|error| error.to_string())?;
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    fs::write(&fleet, scenario).map_err(|error| error.to_string())?;
    let done = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg("--compress-pos=no")
        .arg(format!("--callgrind-out-file={}", trace.display()))
        .args([own, fleet])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let figures = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    let traced = fs::read_to_string(&trace).map_err(|error| error.to_string())?;
    fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    let costs = inclusive(&traced);
    let of = |name: &str| {
        let found = costs
            .iter()
            .filter(|(function, _)| function.ends_with(name));
        found.map(|(_, cost)| *cost as f64).sum()
    };
    Ok(Counted {
        read: of(READ),
        flush: of(FLUSH),
        ask: of(ASK),
        figures,
    })
}

/// What calls of each function have cost, with all that it called. A call stands in
/// two lines after the name of the function that is called.
fn inclusive(trace: &str) -> HashMap<String, u64> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut costs: HashMap<&str, u64> = HashMap::new();
    let (mut called, mut is_cost) = ("", false);
    for line in trace.lines() {
        if is_cost {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse().ok());
            *costs.entry(called).or_default() += cost.unwrap_or(0_u64);
            is_cost = false;
        }
        let name = line.strip_prefix("fn=").or(line.strip_prefix("cfn="));
        if let Some((id, name)) = name.map(|name| name.split_once(' ').unwrap_or((name, ""))) {
            if !name.is_empty() {
                names.insert(id, name);
            }
            called = id;
        }
        is_cost = is_cost || line.starts_with("calls=");
    }
    let named = costs.into_iter().map(|(id, cost)| {
        let name = names.get(id).copied().unwrap_or(id);
        (name.to_owned(), cost)
    });
    named.collect()
}
