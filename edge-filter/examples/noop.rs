//! A filter that does nothing, written as the proxy-wasm SDK has it: what Envoy
//! charges for any Wasm filter at all.
//!
//! The yardstick beside which the real filter's cost is measured.

#![expect(
    missing_docs,
    reason = "the SDK's macro exports a function without any"
)]

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

struct Noop;

impl Context for Noop {}
impl HttpContext for Noop {}
impl RootContext for Noop {
    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _context_id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Self))
    }
}

proxy_wasm::main! {{
    proxy_wasm::set_root_context(|_| Box::new(Noop));
}}
