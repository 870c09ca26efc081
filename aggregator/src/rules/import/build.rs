//! What the importers have in common when they make a rule.

use std::num::NonZeroU64;

use limiter::{
    quota::{Algorithm, Quota},
    rule::{HITS_MAX, KeyPart, Rule, WINDOW_MAX},
    time::Micros,
    window::Window,
};

use super::{expr::Expr, report::Draft};
use crate::rules::write;

/// An address as it is, IPv6 not grouped.
pub(super) const WHOLE_ADDRESS: KeyPart = KeyPart::Address {
    v4_bits: 32,
    v6_bits: 128,
};

/// So many hits per window; else why not. Nothing at all per window is noted to be
/// the least that a rule can admit.
pub(super) fn quota(
    draft: &mut Draft,
    limit: u64,
    window: Micros,
    algorithm: Algorithm,
) -> Result<Quota, String> {
    let (limit, window) = match limit {
        0 => {
            draft.approximate("a limit of 0: the least a rule admits is 1, here in 366 days");
            (1, WINDOW_MAX)
        }
        limit => (limit, window),
    };
    let limit = match NonZeroU64::new(limit) {
        Some(limit) if limit.get() <= HITS_MAX => limit,
        _ => return Err(format!("a limit is at most {HITS_MAX}, got {limit}")),
    };
    match Window::new(window).filter(|_| window <= WINDOW_MAX) {
        Some(window) => Ok(Quota::new(limit, window, algorithm)),
        None => Err(format!(
            "a window is more than 0 and at most {WINDOW_MAX}, got {window}"
        )),
    }
}

/// The quota of what is not limited: nobody looks at it.
pub(super) fn unlimited() -> Result<Quota, String> {
    let window = Window::new(Micros::from_secs(1)).ok_or("a second is no window")?;
    Ok(Quota::new(NonZeroU64::MIN, window, Algorithm::default()))
}

/// The length of a unit as envoyproxy/ratelimit has it, which Envoy Gateway asks: a
/// month is 30 days from the Unix epoch on, and a year 365. None is the calendar's.
pub(super) fn unit(name: &str) -> Option<Micros> {
    const HOUR: u64 = 3_600;
    let secs = match &*name.to_ascii_lowercase() {
        "second" => 1,
        "minute" => 60,
        "hour" => HOUR,
        "day" => 24 * HOUR,
        "week" => 7 * 24 * HOUR,
        "month" => 30 * 24 * HOUR,
        "year" => 365 * 24 * HOUR,
        _ => return None,
    };
    Some(Micros::from_secs(secs))
}

/// Notes that a month or a year is not the calendar's, in case somebody thought so.
pub(super) fn note_unit(draft: &mut Draft, name: &str) {
    let days = match &*name.to_ascii_lowercase() {
        "month" => 30,
        "year" => 365,
        _ => return,
    };
    let name = name.to_ascii_lowercase();
    draft.say(format!(
        "a {name} is {days} days there, counted from 1970, and here; it is not the calendar's"
    ));
}

/// Makes the draft's rule of a quota, a key and what must hold; notes why, if
/// there can be none.
pub(super) fn make(
    draft: &mut Draft,
    quota: Result<Quota, String>,
    key: Vec<KeyPart>,
    when: Expr,
    change: impl FnOnce(&mut Rule),
) {
    let made = quota.and_then(|quota| {
        let mut rule = Rule {
            key,
            conditions: write::in_order(when.conditions()?),
            ..Rule::new(super::names::plain(&draft.name), quota)
        };
        change(&mut rule);
        rule.validate().map_err(|error| error.to_string())?;
        Ok(rule)
    });
    match made {
        Ok(rule) => draft.rule = Some(rule),
        Err(why) => draft.refuse(why),
    }
}
