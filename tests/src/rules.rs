//! Rules as a test writes them.
//!
//! They hold a request for up to a second, far longer than by default: on a busy
//! machine a region in the next process may answer late, and a test that counts
//! to the hit must not mistake that for a denial.

use std::num::NonZeroU64;

use limiter::quota::{Algorithm, Quota};
use limiter::rule::{KeyPart, Rule};
use limiter::time::Micros;
use limiter::window::Window;

/// `limit` hits in a fixed window of `seconds`, all requests counted together.
///
/// # Panics
/// If either is zero.
#[must_use]
pub fn per_window(name: &str, limit: u64, seconds: u64) -> Rule {
    let window = Window::new(Micros::from_secs(seconds)).expect("a window");
    let limit = NonZeroU64::new(limit).expect("a limit");
    let mut rule = Rule::new(name, Quota::new(limit, window, Algorithm::FixedWindow));
    rule.hold = Micros::from_secs(1);
    rule
}

/// `limit` hits in a fixed window of `seconds` for each value of a header.
///
/// # Panics
/// If either is zero.
#[must_use]
pub fn per_header(name: &str, header: &str, limit: u64, seconds: u64) -> Rule {
    let mut rule = per_window(name, limit, seconds);
    rule.key = vec![KeyPart::Header(header.into())];
    rule
}

/// `limit` hits in a fixed window of `seconds` for each client address.
///
/// # Panics
/// If either is zero.
#[must_use]
pub fn per_address(name: &str, limit: u64, seconds: u64) -> Rule {
    let mut rule = per_window(name, limit, seconds);
    rule.key = vec![KeyPart::Address {
        v4_bits: 32,
        v6_bits: 64,
    }];
    rule
}
