//! What the Worker costs: processor time, requests a second and how long they take,
//! beside a Worker that forwards and does nothing, the stand-in that miniflare has
//! for the platform's `ratelimit` binding (workerd alone has none), and a Durable
//! Object that is asked about each request.
//!
//! Each is a workerd of its own. All run at once and are loaded in turn, round after
//! round, so that a busy machine is busy for all of them alike; the median round
//! counts. The origin is a Worker in the same process that answers `ok`. The region
//! is there too, so that leases are granted and renewed as they are in service.
//!
//! `WEIR_WORKER_ROUNDS` and `WEIR_WORKER_MS` (a round, for each) change the effort.

#![expect(
    clippy::expect_used,
    reason = "a bench that cannot measure ends at once"
)]

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use weir_tests::binaries;
use weir_tests::http::get;
use weir_tests::measure::{machine, number, percentile, spread};
use weir_tests::rules::per_header;
use weir_tests::talk::{Protocol, talk};
use weir_tests::wait::wall_us;
use weir_tests::workerd::{Setup, Workerd, compiled};

/// Far more than is sent.
const LIMIT: u64 = 1_000_000_000_000;

/// Connections that one workerd is loaded over.
const CONNECTIONS: usize = 4;

/// Keys that requests go through: all stay leased from flush to flush, or each comes
/// once in a while.
const FEW: u64 = 100;
const MANY: u64 = 10_000;

const PASS: &str = r#"
export { Region } from "./main.js";
export default { fetch: (request, env) => env.WEIR_ORIGIN_WORKER.fetch(request) };
"#;

const BINDING: &str = r#"
export { Region } from "./main.js";
export default {
  async fetch(request, env) {
    const { success } = await env.LIMITER.limit({ key: request.headers.get("x-api-key") });
    return success ? env.WEIR_ORIGIN_WORKER.fetch(request) : new Response(null, { status: 429 });
  },
};
"#;

/// Objects that are asked about each request; `KEEP` is what they do about it.
const OBJECT: &str = r#"
import { DurableObject } from "cloudflare:workers";
export class Region extends DurableObject {
  counts = new Map();
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS counts (key TEXT PRIMARY KEY, count INTEGER)");
  }
  hit(key) {
    const count = (this.counts.get(key) ?? 0) + 1;
    this.counts.set(key, count);
    KEEP
    return count;
  }
}
export default {
  async fetch(request, env) {
    const key = request.headers.get("x-api-key");
    const id = env.WEIR_OBJECTS.idFromName(`object-${key.charCodeAt(key.length - 1) % 4}`);
    const count = await env.WEIR_OBJECTS.get(id).hit(key);
    return count < 1e12 ? env.WEIR_ORIGIN_WORKER.fetch(request) : new Response(null, { status: 429 });
  },
};
"#;

const KEEP: &str =
    r#"this.ctx.storage.sql.exec("INSERT OR REPLACE INTO counts VALUES (?, ?)", key, count);"#;

struct Candidate {
    name: &'static str,
    keys: u64,
    status: &'static str,
    workerd: Workerd,
    /// One value a round: processor time a request in microseconds, requests a
    /// second, and how long they take in milliseconds.
    costs: Vec<f64>,
    rates: Vec<f64>,
    halves: Vec<f64>,
    tails: Vec<f64>,
}

fn main() {
    let rounds = number("WEIR_WORKER_ROUNDS", 9);
    let time = Duration::from_millis(number("WEIR_WORKER_MS", 1_000));
    let mut candidates = candidates();
    for candidate in &mut candidates {
        // The first of each key is allowed by every rule.
        let warm = Http { status: "" };
        let mut keys = (0..).map(|n| n % candidate.keys);
        let next = || keys.next().unwrap_or(0);
        talk(
            &warm,
            candidate.workerd.address(),
            CONNECTIONS,
            time * 4,
            next,
        );
    }
    for _ in 0..rounds {
        for candidate in &mut candidates {
            candidate.round(time);
        }
    }
    report(&candidates);
}

fn candidates() -> Vec<Candidate> {
    let limited = |limit| compiled(1, vec![per_header("per-key", "x-api-key", limit, 3_600)]);
    let weir = |rules: &[u8]| Setup::new(rules, nowhere()).origin_inside();
    let other = |script: &str| weir(b"").entry("other.js", script);
    let kept = OBJECT.replace("KEEP", KEEP);
    vec![
        candidate("forwards, no more", FEW, other(PASS)),
        candidate("ratelimit's stand-in", FEW, binding(other(BINDING))),
        candidate("weir, no rules", FEW, weir(b"")),
        candidate("weir, few keys", FEW, weir(&limited(LIMIT))),
        candidate("weir, many keys", MANY, weir(&limited(LIMIT))),
        Candidate {
            status: "429",
            ..candidate("weir, denied", FEW, weir(&limited(1)))
        },
        candidate("object a request", FEW, other(&OBJECT.replace("KEEP", ""))),
        candidate("the same, durable", FEW, other(&kept)),
    ]
}

/// No origin is asked.
fn nowhere() -> SocketAddr {
    ([127, 0, 0, 1], 9).into()
}

/// The stand-in, as miniflare binds it.
fn binding(setup: Setup) -> Setup {
    let tools = binaries::workspace().join(".cache/tools/node_modules/miniflare");
    let path = tools.join("dist/src/workers/ratelimit/ratelimit.worker.js");
    let text = fs::read_to_string(path).expect("miniflare is installed");
    let name = "cloudflare-internal:ratelimit:module";
    let inner = "(name = \"namespaceId\", text = \"1\"), (name = \"limit\", json = \"1000000000\"), \
                 (name = \"period\", json = \"60\")";
    setup.extension(name, &text).binding(&format!(
        "(name = \"LIMITER\", wrapped = (moduleName = {name:?}, innerBindings = [{inner}]))"
    ))
}

fn candidate(name: &'static str, keys: u64, setup: Setup) -> Candidate {
    Candidate {
        name,
        keys,
        status: "200",
        workerd: Workerd::start(setup),
        costs: Vec::new(),
        rates: Vec::new(),
        halves: Vec::new(),
        tails: Vec::new(),
    }
}

/// A GET with a key, and the answer to it.
struct Http {
    /// What is hoped for; anything if empty.
    status: &'static str,
}

impl Protocol for Http {
    fn ask(&self, key: u64, out: &mut Vec<u8>) {
        let key = format!("key-{key}");
        let headers = [
            ("user-agent", "worker-cost/1"),
            ("accept", "*/*"),
            ("x-api-key", key.as_str()),
        ];
        out.extend(get("/v1/things?id=7", &headers));
    }

    fn is_whole(&self, answer: &[u8]) -> Result<bool, String> {
        let text = String::from_utf8_lossy(answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return Ok(false);
        };
        if !head
            .strip_prefix("HTTP/1.1 ")
            .is_some_and(|head| head.starts_with(self.status))
        {
            return Err(text.into_owned());
        }
        let length = head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split('\r').next()?.parse().ok());
        let length: usize = length.ok_or_else(|| head.to_owned())?;
        Ok(body.len() >= length)
    }
}

impl Candidate {
    fn round(&mut self, time: Duration) {
        let protocol = Http {
            status: self.status,
        };
        let address = self.workerd.address();
        let mut keys = (0..).map(|n| n % self.keys);
        let mut next = || keys.next().unwrap_or(0);
        // Traffic that has been going for a while, so that leases are what they are
        // in service: what stood still was given back.
        talk(&protocol, address, CONNECTIONS, time * 2, &mut next);
        let (before, began_us) = (self.workerd.process().cpu_time(), wall_us());
        let took = talk(&protocol, address, CONNECTIONS, time, &mut next);
        let spent = self.workerd.process().cpu_time().saturating_sub(before);
        let requests = took.len().max(1) as f64;
        self.costs.push(spent.as_secs_f64() * 1e6 / requests);
        let passed = Duration::from_micros(wall_us() - began_us);
        self.rates.push(requests / passed.as_secs_f64());
        self.halves.push(percentile(&took, 500));
        self.tails.push(percentile(&took, 990));
    }
}

fn report(candidates: &[Candidate]) {
    let plain = candidates.first().map_or(&[][..], |c| &c.costs);
    println!("{CONNECTIONS} connections; {}", machine());
    println!(
        "{:<22} {:>24} {:>9} {:>11} {:>8} {:>8}",
        "worker", "us of cpu a request", "added us", "requests/s", "p50 ms", "p99 ms"
    );
    for candidate in candidates {
        let pairs = candidate.costs.iter().zip(plain);
        let added: Vec<f64> = pairs.map(|(cost, plain)| cost - plain).collect();
        println!(
            "{:<22} {:>24} {:>9.1} {:>11.0} {:>8.2} {:>8.2}",
            candidate.name,
            spread(&candidate.costs),
            percentile(&added, 500),
            percentile(&candidate.rates, 500),
            percentile(&candidate.halves, 500),
            percentile(&candidate.tails, 500),
        );
    }
}
