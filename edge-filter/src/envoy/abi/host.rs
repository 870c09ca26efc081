//! The host's side of the ABI: its functions as they are named there.

use super::Status;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    pub(super) fn proxy_log(level: u32, message: *const u8, size: usize) -> Status;
    pub(super) fn proxy_get_current_time_nanoseconds(nanos: *mut u64) -> Status;
    pub(super) fn proxy_set_tick_period_milliseconds(period: u32) -> Status;
    pub(super) fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        max: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> Status;
    pub(super) fn proxy_get_header_map_pairs(
        map: u32,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> Status;
    pub(super) fn proxy_get_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> Status;
    pub(super) fn proxy_replace_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> Status;
    pub(super) fn proxy_get_property(
        path: *const u8,
        path_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> Status;
    pub(super) fn proxy_set_property(
        path: *const u8,
        path_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> Status;
    pub(super) fn proxy_http_call(
        cluster: *const u8,
        cluster_size: usize,
        headers: *const u8,
        headers_size: usize,
        body: *const u8,
        body_size: usize,
        trailers: *const u8,
        trailers_size: usize,
        timeout_ms: u32,
        token: *mut u32,
    ) -> Status;
    pub(super) fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> Status;
    pub(super) fn proxy_set_effective_context(context: u32) -> Status;
    pub(super) fn proxy_continue_stream(stream: u32) -> Status;
    pub(super) fn proxy_done() -> Status;
    pub(super) fn proxy_define_metric(
        kind: u32,
        name: *const u8,
        name_size: usize,
        id: *mut u32,
    ) -> Status;
    pub(super) fn proxy_increment_metric(id: u32, by: i64) -> Status;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    pub(super) fn random_get(buffer: *mut u8, size: usize) -> u16;
}
