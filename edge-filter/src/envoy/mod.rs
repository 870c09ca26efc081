//! The adapter for Envoy: carries bytes between the host and the shared logic.
//!
//! - `abi`: the proxy-wasm ABI, each host function as a safe Rust function.
//! - `answer`: what requests are answered.
//! - `exports`: what Envoy calls, and nothing more.
//! - `host`: Envoy as the shared logic sees it.
//! - `worker`: one VM's source and what it takes to run it.

mod abi;
mod answer;
mod exports;
mod host;
mod worker;
