//! What passes between the module and JavaScript: numbers, and bytes in two places.
//!
//! Bytes that come in lie in the *inbox*, at [`inbox`]; bytes that go out in the
//! *outbox*, which [`put`] fills. JavaScript reads and writes both while the module
//! is not running, or while it waits for a function of JavaScript's to return.
//!
//! The crate `worker` is not used, for two reasons. In a trial it took longer to
//! forward a request than Weir takes to limit it, since every value becomes an object
//! on both sides. And a panic there fails all requests under way, while this module can
//! be thrown away and made anew between two of them. ARCHITECTURE.md has the figures.
//!
//! All `unsafe` of the adapter's own calls is here. It rests on one rule:
//! JavaScript writes only to the inbox, and no more than it asked room for.

#![expect(unsafe_code, reason = "the boundary to the host; see above")]

use std::cell::{Cell, RefCell};

use limiter::time::Timestamp;

// What JavaScript does for the module.
#[link(wasm_import_module = "weir")]
unsafe extern "C" {
    /// Writes a line to the log.
    #[link_name = "log"]
    fn host_log(level: u32, text: *const u8, len: usize);
    /// Puts a header of the request at hand into the inbox; -1 if there is none.
    #[link_name = "header"]
    fn host_header(name: *const u8, len: usize) -> i32;
    /// Puts all of them there, in the encoding of `pairs`.
    #[link_name = "headers"]
    fn host_headers() -> i32;
    /// Puts the client's address there; -1 if it is not known.
    #[link_name = "peer"]
    fn host_peer() -> i32;
    /// Puts there what Cloudflare knows of the request, by its name in rules; -1 if
    /// it does not.
    #[link_name = "attribute"]
    fn host_attribute(name: *const u8, len: usize) -> i32;
    /// Puts a header of the response at hand there; -1 if there is none.
    #[link_name = "answer"]
    fn host_answer(name: *const u8, len: usize) -> i32;
    /// Takes a record, or a chunk of a snapshot, of the books.
    #[link_name = "keep"]
    fn host_keep(bytes: *const u8, len: usize);
}

/// How loud a line is.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum Level {
    /// Worth knowing.
    Info = 1,
    /// Something is not as it should be.
    Warn = 2,
    /// A panic.
    Error = 3,
}

thread_local! {
    static INBOX: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTBOX: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Numbers that go out beside the outbox.
    static NUMBERS: Cell<[u32; 2]> = const { Cell::new([0; 2]) };
}

/// Writes a line to the log.
pub(super) fn log(level: Level, text: &str) {
    // SAFETY: the host reads `text` during the call.
    unsafe { host_log(level as u32, text.as_ptr(), text.len()) };
}

/// One header of the request at hand.
pub(super) fn header(name: &str) -> Option<Vec<u8>> {
    // SAFETY: the host reads `name` during the call, and writes to the inbox.
    taken(unsafe { host_header(name.as_ptr(), name.len()) })
}

/// All headers of the request at hand; empty if there is none.
pub(super) fn headers() -> Vec<u8> {
    // SAFETY: the host writes to the inbox.
    taken(unsafe { host_headers() }).unwrap_or_default()
}

/// The client's address as text, without a port.
pub(super) fn peer() -> Option<Vec<u8>> {
    // SAFETY: the host writes to the inbox.
    taken(unsafe { host_peer() })
}

/// What Cloudflare knows of the request at hand.
pub(super) fn attribute(name: &str) -> Option<Vec<u8>> {
    // SAFETY: the host reads `name` during the call, and writes to the inbox.
    taken(unsafe { host_attribute(name.as_ptr(), name.len()) })
}

/// One header of the response at hand.
pub(super) fn answer(name: &str) -> Option<Vec<u8>> {
    // SAFETY: the host reads `name` during the call, and writes to the inbox.
    taken(unsafe { host_answer(name.as_ptr(), name.len()) })
}

/// Hands over a record or a chunk.
pub(super) fn keep(bytes: &[u8]) {
    // SAFETY: the host reads `bytes` during the call.
    unsafe { host_keep(bytes.as_ptr(), bytes.len()) };
}

/// The first bytes of the inbox; none for a negative length.
pub(super) fn taken(len: i32) -> Option<Vec<u8>> {
    let len = usize::try_from(len).ok()?;
    INBOX.with(|inbox| inbox.try_borrow().ok()?.get(..len).map(<[u8]>::to_vec))
}

/// Puts bytes where JavaScript finds them.
pub(super) fn put(bytes: Vec<u8>) {
    OUTBOX.with(|outbox| {
        if let Ok(mut outbox) = outbox.try_borrow_mut() {
            *outbox = bytes;
        }
    });
}

/// Puts numbers beside them.
pub(super) fn put_numbers(numbers: [u32; 2]) {
    NUMBERS.set(numbers);
}

/// An instant as JavaScript has it: milliseconds since the Unix epoch.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number that is none becomes zero, one that is too large the largest"
)]
pub(super) fn instant(millis: f64) -> Timestamp {
    Timestamp::from_micros((millis * 1_000.0) as u64)
}

/// The inverse of [`instant`].
#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of this age are below 2^53"
)]
pub(super) fn millis(instant: Timestamp) -> f64 {
    instant.as_micros() as f64 / 1_000.0
}

/// Room for at least `len` bytes in the inbox; where it begins.
#[unsafe(no_mangle)]
extern "C" fn inbox(len: usize) -> *mut u8 {
    INBOX.with(|inbox| {
        inbox
            .try_borrow_mut()
            .map_or(core::ptr::null_mut(), |mut inbox| {
                if inbox.len() < len {
                    inbox.resize(len, 0);
                }
                inbox.as_mut_ptr()
            })
    })
}

/// Where the outbox begins.
#[unsafe(no_mangle)]
extern "C" fn outbox() -> *const u8 {
    OUTBOX.with(|outbox| {
        outbox
            .try_borrow()
            .map_or(core::ptr::null(), |outbox| outbox.as_ptr())
    })
}

/// How many bytes are in it.
#[unsafe(no_mangle)]
extern "C" fn outbox_len() -> usize {
    OUTBOX.with(|outbox| outbox.try_borrow().map_or(0, |outbox| outbox.len()))
}

/// One of the numbers beside it.
#[unsafe(no_mangle)]
extern "C" fn number(place: usize) -> u32 {
    NUMBERS.get().get(place).copied().unwrap_or(0)
}
