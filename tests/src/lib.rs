//! Shared parts of the tests: real processes, started, watched and cleaned up.
//!
//! | file | what |
//! |---|---|
//! | `binaries` | where the things under test are found |
//! | `process` | one child process: its log, its end |
//! | `wait` | waiting for a condition, never for a time |
//! | `http` | a blocking HTTP/1.1 client that sends any bytes it is given |
//! | `upstream` | an HTTP/1.1 server whose answer is a closure, also a bad one |
//! | `prom` | reading `/metrics` and `/stats/prometheus` |
//! | `region` | the real Ledger in the test itself, that can be told to misbehave |
//! | `rules` | rules as a test writes them |
//! | `aggregator` | `weir serve` on a data directory and a rule file |
//! | `envoy`, `envoy_config` | a real Envoy with the filter in it |
//! | `wasm` | what a WebAssembly module imports and exports |
//! | `workerd` | a real workerd with the Worker in it, and its region |
//! | `objects` | its objects as regions of an aggregator above them |
//! | `filter_metrics` | what the filter tells Envoy, by name |
//! | `fleet` | three Envoys of two workers that share one `weir serve` |
//! | `delay` | a region far away, one that fell silent, a network that loses and heals |
//! | `light` | sources in threads of the test, and what they were acknowledged |
//! | `site` | one region with such sources before it, and its books compared |
//! | `cluster` | regions with such sources under a global aggregator |
//! | `counting` | an allocator that counts |
//! | `measure` | medians, and time spent, for the benches |
//! | `warm` | a source whose every key is leased |
//! | `flush` | a source's flushes as they are on the wire |
//! | `redis_server` | Debian's redis-server, for comparison |
//! | `postgres_server` | Debian's PostgreSQL, likewise |
//! | `talk` | one thread that asks over many connections, in any protocol |
//! | `load` | many connections at once, and what they were answered |
//! | `spray` | clients at a steady rate, and when they were answered what |
//!
//! Everything blocks and nothing needs a runtime: a test is a straight line, and
//! what it started ends when its handle is dropped, also by a panic.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a harness that cannot do its part fails the test, loudly and at once"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "real processes live by the real clock"
)]

pub mod aggregator;
pub mod binaries;
pub mod cluster;
pub mod counting;
pub mod delay;
pub mod envoy;
pub mod envoy_config;
pub mod filter_metrics;
pub mod fleet;
pub mod flush;
pub mod http;
pub mod light;
pub mod load;
pub mod measure;
pub mod objects;
pub mod postgres_server;
pub mod process;
pub mod prom;
pub mod redis_server;
pub mod region;
pub mod rules;
pub mod site;
pub mod spray;
pub mod talk;
pub mod upstream;
pub mod wait;
pub mod warm;
pub mod wasm;
pub mod workerd;
