//! Numbers, spans of time and shares, as people write them.

use std::fmt;

use limiter::{
    rule::{HITS_MAX, TOLERANCE_PPM_MAX, WINDOW_MAX},
    time::Micros,
    window::Window,
};

use super::at::At;

/// Units of time and their length in microseconds, the longest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
];

/// The window that is a month of the calendar.
const MONTH: &str = "month";

/// The shortest window that a rule file can ask for.
const WINDOW_MIN: Micros = Micros::from_millis(1);

/// Millionths in a percent.
const PPM_PER_PERCENT: u32 = 10_000;

/// A number of hits, `min` at least.
pub(super) fn hits(at: &At<'_>, min: u64) -> Option<u64> {
    let what = format!("a whole number from {min} to {HITS_MAX}");
    let number = digits(at.bare(&what)?);
    let number = number.filter(|number| (min..=HITS_MAX).contains(number));
    number.or_else(|| at.expected(what))
}

/// A span of time from `min` to `max`.
pub(super) fn span(at: &At<'_>, min: Micros, max: Micros) -> Option<Micros> {
    let what = format!(
        "a whole number and a unit (ms, s, m, h or d), from {} to {}",
        Written(min),
        Written(max)
    );
    let span = parse_span(at.text(&what)?).filter(|span| (min..=max).contains(span));
    span.or_else(|| at.expected(what))
}

/// A window: a span of time, or a calendar month.
pub(super) fn window(at: &At<'_>) -> Option<Window> {
    if at.scalar() == Some(MONTH) {
        return Some(Window::MONTH);
    }
    let what = format!(
        "a whole number and a unit (ms, s, m, h or d), from {} to {}, or {MONTH}",
        Written(WINDOW_MIN),
        Written(WINDOW_MAX)
    );
    let span = parse_span(at.text(&what)?);
    let span = span.filter(|span| (WINDOW_MIN..=WINDOW_MAX).contains(span));
    let window = span.and_then(Window::new);
    window.or_else(|| at.expected(what))
}

fn parse_span(text: &str) -> Option<Micros> {
    let unit = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(unit)?;
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
    digits(number)?.checked_mul(*length).map(Micros::new)
}

/// A share of the limit in millionths, written in percent.
pub(super) fn percent(at: &At<'_>) -> Option<u32> {
    let what = "a percentage from 0% to 100%, with at most four decimals";
    let share = parse_percent(at.text(what)?);
    let share = share.filter(|ppm| *ppm <= TOLERANCE_PPM_MAX);
    share.or_else(|| at.expected(what))
}

fn parse_percent(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?;
    let (whole, decimals) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    if decimals.len() > 4 {
        return None;
    }
    let whole = u32::try_from(digits(whole)?).ok()?;
    let decimals = u32::try_from(digits(&format!("{decimals:0<4}"))?).ok()?;
    whole.checked_mul(PPM_PER_PERCENT)?.checked_add(decimals)
}

/// A number of nothing but digits.
pub(super) fn digits(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// A span of time as a rule file has it, in the longest unit that leaves no
/// rest.
pub(super) struct Written(pub(super) Micros);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.get();
        let unit = UNITS
            .iter()
            .find(|(_, length)| micros.is_multiple_of(*length));
        match unit {
            _ if micros == 0 => f.write_str("0s"),
            Some((name, length)) => write!(f, "{}{name}", micros / length),
            None => write!(f, "{micros}us"),
        }
    }
}

/// A window as a rule file has it.
pub(super) struct Per(pub(super) Window);

impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.fixed() {
            Some(length) => Written(length).fmt(f),
            None => f.write_str(MONTH),
        }
    }
}

/// A share in millionths, written in percent.
pub(super) struct Percent(pub(super) u32);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:04}", self.0 % PPM_PER_PERCENT);
        write!(f, "{}", self.0 / PPM_PER_PERCENT)?;
        match decimals.trim_end_matches('0') {
            "" => f.write_str("%"),
            decimals => write!(f, ".{decimals}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit_and_nothing_else() {
        assert_eq!(parse_span("1m"), Some(Micros::from_secs(60)));
        assert_eq!(parse_span("250ms"), Some(Micros::from_millis(250)));
        assert_eq!(parse_span("0s"), Some(Micros::ZERO));
        for wrong in [
            "",
            "1",
            "m",
            "1 m",
            "1.5s",
            "-1s",
            "1M",
            "1m30s",
            "99999999999999d",
        ] {
            assert_eq!(parse_span(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_is_exact_to_the_millionth() {
        for (text, ppm) in [
            ("2%", Some(20_000)),
            ("0.5%", Some(5_000)),
            ("0.0001%", Some(1)),
            ("100%", Some(1_000_000)),
            ("2", None),
            ("%", None),
            (".5%", None),
            ("2.%", None),
            ("0.00001%", None),
            ("-1%", None),
        ] {
            assert_eq!(parse_percent(text), ppm, "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for micros in [0, 1_000, 60_000_000, 90_000_000, 86_400_000_000] {
            let span = Micros::new(micros);
            assert_eq!(parse_span(&Written(span).to_string()), Some(span));
        }
        for ppm in [0, 1, 5_000, 20_000, 1_000_000] {
            assert_eq!(parse_percent(&Percent(ppm).to_string()), Some(ppm));
        }
    }
}
