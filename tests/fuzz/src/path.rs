//! Patterns of paths and hosts, and everything that takes a request apart.

use limiter::rule::{HostPattern, PathPattern, SEGMENTS_MAX};

use crate::split::lines;

/// The first line is a pattern, the rest a path or a host.
pub fn run(data: &[u8]) {
    let ([pattern], text) = lines(data);
    let Ok(pattern) = str::from_utf8(pattern) else {
        return;
    };
    if let Ok(host) = HostPattern::new(pattern) {
        host.fits(text);
    }
    let Ok(compiled) = PathPattern::new(pattern) else {
        return;
    };
    let fits = compiled.fits(text);
    let path = text.split(|byte| *byte == b'?').next().unwrap_or_default();
    let segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    // The plain way takes time without bound.
    if segments.len() <= SEGMENTS_MAX && pattern.matches('*').count() <= 6 && path.len() <= 64 {
        let wanted: Vec<&[u8]> = pattern.as_bytes().split(|byte| *byte == b'/').collect();
        let plainly = path.starts_with(b"/") && fits_plainly(&wanted, &segments);
        assert_eq!(fits, plainly, "{pattern:?} on {:?}", path.escape_ascii());
    }
}

/// The same, as it is described, with no thought of how long that takes.
fn fits_plainly(wanted: &[&[u8]], segments: &[&[u8]]) -> bool {
    match (wanted.split_first(), segments.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((&first, after)), _) if first == b"**" => {
            fits_plainly(after, segments)
                || segments
                    .split_first()
                    .is_some_and(|(_, rest)| fits_plainly(wanted, rest))
        }
        (Some(_), None) => false,
        (Some((first, after)), Some((segment, rest))) => {
            like(first, segment) && fits_plainly(after, rest)
        }
    }
}

fn like(glob: &[u8], text: &[u8]) -> bool {
    match (glob.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', after)), None) => like(after, text),
        (Some((b'*', after)), Some((_, rest))) => like(after, text) || like(glob, rest),
        (Some((wanted, after)), Some((byte, rest))) => wanted == byte && like(after, rest),
        (None, Some(_)) | (Some(_), None) => false,
    }
}
