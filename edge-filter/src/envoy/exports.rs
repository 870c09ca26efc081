//! What Envoy calls, and nothing more: each function exported here is entered for
//! every request or tick, and each that is not costs nothing.

#![expect(
    unsafe_code,
    reason = "an exported name is unsafe to choose: the linker knows only one of each"
)]

use super::worker::{self, Action};

unsafe extern "C" {
    /// The linker's: runs the module's constructors.
    fn __wasm_call_ctors();
}

/// Called once, before anything else.
///
/// Only because it refers to the constructors does the linker not wrap every
/// export in a call of them.
#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    // SAFETY: the host calls this once, first, and nobody else does.
    unsafe { __wasm_call_ctors() };
}

/// Marks the ABI's version; never called.
#[unsafe(no_mangle)]
extern "C" fn proxy_abi_version_0_2_1() {}

/// A configuration has come, the first or a new one; false refuses it.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_configure(root: u32, _size: usize) -> bool {
    worker::configure(root)
}

/// Time has passed.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_tick(root: u32) {
    worker::tick(root);
}

/// A request's headers are there.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_headers(context: u32, _count: usize, _end: bool) -> u32 {
    match worker::request(context) {
        Action::Continue => 0,
        // Neither body nor trailers pass meanwhile, and the peer is slowed down
        // once enough of them wait: StopAllIterationAndWatermark.
        Action::Stop => 4,
    }
}

/// A response's headers are there.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_headers(context: u32, _count: usize, _end: bool) -> u32 {
    worker::response(context);
    0
}

/// A call has ended.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_http_call_response(
    _root: u32,
    token: u32,
    _headers: usize,
    body_size: usize,
    _trailers: usize,
) {
    worker::answer(token, body_size);
}

/// A request or a root context is about to end; false asks for time until
/// `proxy_done`.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_done(context: u32) -> bool {
    worker::done(context)
}
