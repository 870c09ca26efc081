//! The adapter for Envoy: carries bytes between the host and the shared logic.
//!
//! - `abi`: the proxy-wasm ABI, each host function as a safe Rust function.
//! - `exports`: what Envoy calls.

#[expect(dead_code, reason = "the filter that uses it comes with the limiter")]
mod abi;
mod exports;
