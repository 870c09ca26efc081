//! Waiting for a condition, never for a time.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a condition is given before the test fails: long, since the machine
/// may be busy, and of no matter to a test that passes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Polls until `probe` gives a value, and returns it.
///
/// # Panics
/// After [`PATIENCE`], naming what was waited for.
pub fn wait_for<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    wait_within(PATIENCE, probe)
        .unwrap_or_else(|| panic!("{what} did not come true in {PATIENCE:?}"))
}

/// Polls until `condition` holds.
///
/// # Panics
/// After [`PATIENCE`], naming what was waited for.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Polls until `probe` gives a value; none if it did not within `limit`.
///
/// For promises that carry a time of their own ("within 2 s").
pub fn wait_within<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = probe() {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The wall clock, in microseconds since the Unix epoch.
#[must_use]
pub fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}
