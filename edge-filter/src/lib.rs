//! Weir at the edge: what every host shares, and an adapter for each host.

#[cfg(all(feature = "envoy", target_arch = "wasm32"))]
mod envoy;
