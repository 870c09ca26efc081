//! What Envoy calls, and nothing more: each function exported here is entered for
//! every request or tick, and each that is not costs nothing.

#![expect(
    unsafe_code,
    reason = "an exported name is unsafe to choose: the linker knows only one of each"
)]

/// What a request does after the filter saw it.
#[repr(u32)]
pub(super) enum Action {
    /// Goes on to the next filter.
    Continue = 0,
}

/// Marks the ABI's version; never called.
#[unsafe(no_mangle)]
extern "C" fn proxy_abi_version_0_2_1() {}

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

/// The VM has started.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_vm_start(_root: u32, _size: usize) -> bool {
    true
}

/// A configuration has come, the first or a new one; false refuses it.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_configure(_root: u32, _size: usize) -> bool {
    true
}

/// A request's headers are there.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_headers(_context: u32, _count: usize, _end: bool) -> Action {
    Action::Continue
}
