//! Weir at the edge: what every host shares, and an adapter for each host.
//!
//! | file | what |
//! |---|---|
//! | `source` | one deciding memory: requests in, effects out |
//! | `request` | a request as the rules see it, fetched from the host as needed |
//! | `claims` | claims of a token, by name |
//! | `pairs` | header lists in the proxy-wasm encoding |
//! | `refusal` | what a client is told that has to wait |
//! | `explain` | why a request was decided as it was, for those who ask |
//! | `config` | the settings of one filter |
//! | `metrics` | what is counted, until the host is told |
//! | `shards` | a region that is several objects: which of them is told what |
//! | `envoy` | the adapter for Envoy: bytes between it and the above |
//! | `worker` | the adapter for Cloudflare's Workers, and the region as objects there |
//! | `component` | the adapter for hosts of WebAssembly components |
//! | `middleware` | the adapter for servers of WASI's HTTP: a limiter in front of a handler |
//!
//! Nothing here panics: a panic inside a host takes a whole worker's limiter
//! with it. Only the adapters talk to a host; the rest runs in any test.

pub mod claims;
#[cfg(all(feature = "component", target_arch = "wasm32"))]
mod component;
pub mod config;
#[cfg(all(feature = "envoy", target_arch = "wasm32"))]
mod envoy;
pub mod explain;
pub mod metrics;
#[cfg(all(feature = "middleware", target_arch = "wasm32"))]
mod middleware;
pub mod pairs;
pub mod refusal;
pub mod request;
pub mod shards;
pub mod source;
#[cfg(all(feature = "worker", target_arch = "wasm32"))]
mod worker;
