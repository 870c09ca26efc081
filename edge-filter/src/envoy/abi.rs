//! The proxy-wasm ABI 0.2.1: each host function that the filter needs, as a safe
//! Rust function that cannot panic.
//!
//! The official SDK is not used, for two reasons that were measured. It panics:
//! on any status it does not expect, on a header name that is not UTF-8, on a
//! context it does not know; and a panic here is a VM lost. And it exports every
//! callback there is, so that Envoy enters the VM seven times a request where
//! two will do, which is half of what a Wasm filter costs.
//!
//! All `unsafe` of the filter's own calls is in this file, and rests on two rules: the host
//! reads and writes only the ranges it is given during the call, and memory it
//! hands over came from [`proxy_on_memory_allocate`] with exactly the size it
//! names.

#![expect(unsafe_code, reason = "the boundary to the host; see above")]

mod host;

use core::ptr::{null, null_mut};

use crate::pairs;

/// The ABI's way to say what became of a call; anything but zero is a no.
type Status = u32;

const OK: Status = 0;

/// How loud a log line is.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum Level {
    /// Worth knowing.
    Info = 2,
    /// Something is not as it should be; the filter goes on.
    Warn = 3,
    /// The operator must act.
    Error = 4,
}

/// A metric's kind.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum Metric {
    /// Only grows.
    Counter = 0,
    /// Moves by differences; all workers share it.
    Gauge = 1,
}

/// A header map of the host.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum Map {
    /// The headers of the current request.
    Request = 0,
    /// The headers of the current response.
    Response = 2,
    /// The headers of the reply to a call.
    CallResponse = 6,
}

/// A byte buffer of the host.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum Buffer {
    /// The body of the reply to a call.
    CallResponse = 4,
    /// The plugin's configuration.
    PluginConfiguration = 7,
}

/// A call to a cluster by name.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) cluster: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
    pub(super) timeout_ms: u32,
}

/// Writes a line to Envoy's log.
pub(super) fn log(level: Level, message: &str) {
    // SAFETY: the host reads `message` during the call.
    unsafe { host::proxy_log(level as u32, message.as_ptr(), message.len()) };
}

/// Nanoseconds since the Unix epoch by the host's wall clock.
pub(super) fn wall_clock_nanos() -> u64 {
    let mut nanos = 0;
    // SAFETY: the host writes eight bytes to `nanos`.
    unsafe { host::proxy_get_current_time_nanoseconds(&raw mut nanos) };
    nanos
}

/// Bytes from the host's random source; all zero if it has none.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the host writes `N` bytes.
    unsafe { host::random_get(bytes.as_mut_ptr(), N) };
    bytes
}

/// Asks to be called every so often.
pub(super) fn set_tick_period_ms(period: u32) {
    // SAFETY: no memory is shared.
    unsafe { host::proxy_set_tick_period_milliseconds(period) };
}

/// The whole of a header map in the ABI's encoding; empty if there is none.
pub(super) fn map(map: Map) -> Vec<u8> {
    // SAFETY: see `taken`.
    taken(|data, size| unsafe { host::proxy_get_header_map_pairs(map as u32, data, size) })
        .unwrap_or_default()
}

/// One value of a header map.
pub(super) fn map_value(map: Map, name: &str) -> Option<Vec<u8>> {
    // SAFETY: the host reads `name` during the call; and see `taken`.
    taken(|data, size| unsafe {
        host::proxy_get_header_map_value(map as u32, name.as_ptr(), name.len(), data, size)
    })
}

/// Sets one value of a header map, in place of those there are.
pub(super) fn set_map_value(map: Map, name: &str, value: &str) {
    // SAFETY: the host reads `name` and `value` during the call.
    unsafe {
        host::proxy_replace_header_map_value(
            map as u32,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        );
    }
}

/// The first `max` bytes of a buffer; empty if there is none.
pub(super) fn buffer(buffer: Buffer, max: usize) -> Vec<u8> {
    // SAFETY: see `taken`.
    taken(|data, size| unsafe { host::proxy_get_buffer_bytes(buffer as u32, 0, max, data, size) })
        .unwrap_or_default()
}

/// A property of the current request, by its path with NUL between the parts.
pub(super) fn property(path: &str) -> Option<Vec<u8>> {
    // SAFETY: the host reads `path` during the call; and see `taken`.
    taken(|data, size| unsafe { host::proxy_get_property(path.as_ptr(), path.len(), data, size) })
}

/// Sets a property of the current request, for the access log.
pub(super) fn set_property(path: &str, value: &[u8]) {
    // SAFETY: the host reads `path` and `value` during the call.
    unsafe {
        host::proxy_set_property(path.as_ptr(), path.len(), value.as_ptr(), value.len());
    }
}

/// Sends a call; its reply comes with the token. None if the cluster is unknown
/// or takes no calls.
pub(super) fn call(call: &Call<'_>) -> Option<u32> {
    let headers = pairs::encode(call.headers);
    let mut token = 0;
    // SAFETY: the host reads the ranges and writes `token`, during the call.
    let status = unsafe {
        host::proxy_http_call(
            call.cluster.as_ptr(),
            call.cluster.len(),
            headers.as_ptr(),
            headers.len(),
            call.body.as_ptr(),
            call.body.len(),
            null(),
            0,
            call.timeout_ms,
            &raw mut token,
        )
    };
    (status == OK).then_some(token)
}

/// An answer to a request.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    pub(super) status: u16,
    /// What `%RESPONSE_CODE_DETAILS%` shows.
    pub(super) details: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// For a call of gRPC, its message.
    pub(super) body: &'a [u8],
    /// For a call of gRPC, its status.
    pub(super) grpc: Option<u32>,
}

/// Answers the current request.
pub(super) fn respond(reply: &Reply<'_>) -> bool {
    /// The ABI's word for "this is no gRPC".
    const NO_GRPC: i32 = -1;
    let headers = pairs::encode(reply.headers);
    let grpc = reply.grpc.and_then(|status| i32::try_from(status).ok());
    // SAFETY: the host reads the ranges during the call.
    let sent = unsafe {
        host::proxy_send_local_response(
            u32::from(reply.status),
            reply.details.as_ptr(),
            reply.details.len(),
            reply.body.as_ptr(),
            reply.body.len(),
            headers.as_ptr(),
            headers.len(),
            grpc.unwrap_or(NO_GRPC),
        )
    };
    sent == OK
}

/// Makes another context the current one; false if it is gone.
pub(super) fn set_context(context: u32) -> bool {
    // SAFETY: no memory is shared.
    unsafe { host::proxy_set_effective_context(context) == OK }
}

/// Lets the current, paused request go on.
pub(super) fn resume_request() -> bool {
    const HTTP_REQUEST: u32 = 0;
    // SAFETY: no memory is shared.
    unsafe { host::proxy_continue_stream(HTTP_REQUEST) == OK }
}

/// Says that the current context, which asked for time to finish, has finished.
pub(super) fn done() {
    // SAFETY: no memory is shared.
    unsafe { host::proxy_done() };
}

/// Defines a metric, or finds it again.
pub(super) fn define_metric(kind: Metric, name: &str) -> Option<u32> {
    let mut id = 0;
    // SAFETY: the host reads `name` and writes `id`, during the call.
    let status =
        unsafe { host::proxy_define_metric(kind as u32, name.as_ptr(), name.len(), &raw mut id) };
    (status == OK).then_some(id)
}

/// Adds to a metric.
pub(super) fn increment_metric(id: u32, by: i64) {
    // SAFETY: no memory is shared.
    unsafe { host::proxy_increment_metric(id, by) };
}

/// What the host hands over in memory it got from [`proxy_on_memory_allocate`].
fn taken(ask: impl FnOnce(*mut *mut u8, *mut usize) -> Status) -> Option<Vec<u8>> {
    let (mut data, mut size) = (null_mut::<u8>(), 0);
    let status = ask(&raw mut data, &raw mut size);
    if status != OK || data.is_null() {
        return None;
    }
    // SAFETY: the host got `data` from `proxy_on_memory_allocate(size)`, whose
    // vector had exactly this capacity, filled it, and keeps no copy of it.
    Some(unsafe { Vec::from_raw_parts(data, size, size) })
}

/// Memory for the host to hand something over in; [`taken`] takes it back.
///
/// Named as the ABI wants it, and exported.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    // A boxed slice, for a capacity of exactly `size`.
    Box::leak(vec![0_u8; size].into_boxed_slice()).as_mut_ptr()
}
