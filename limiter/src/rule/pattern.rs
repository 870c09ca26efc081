//! Patterns: of paths, and of hosts.

use alloc::{boxed::Box, vec::Vec};

use super::text::{self, TextError};
use crate::request::parts;

/// The most segments that one path pattern may have.
pub const SEGMENTS_MAX: usize = 64;

/// A pattern that a path fits or not, compared byte by byte.
///
/// It begins with a slash. `*` stands for any part of one segment, none
/// included; `**`, which must be a segment of its own, for any number of whole
/// segments, none included: `/v1/**` fits `/v1`, `/v1/` and `/v1/a/b`, not
/// `/v10`. Nothing is normalised, neither here nor in the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern(Box<[Segment]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Box<[u8]>),
    Glob(Box<[u8]>),
    AnyNumber,
}

impl PathPattern {
    /// Reads a pattern.
    pub fn new(pattern: &str) -> Result<Self, TextError> {
        text::value(pattern)?;
        let segments = pattern.strip_prefix('/').ok_or(TextError::NoSlash)?;
        if segments.split('/').count() > SEGMENTS_MAX {
            return Err(TextError::TooManySegments);
        }
        if segments.contains('?') {
            return Err(TextError::QueryInPath);
        }
        let segments: Result<Vec<_>, _> = segments.split('/').map(Segment::new).collect();
        Ok(Self(segments?.into()))
    }

    /// Whether a path, its query aside, fits.
    pub fn fits(&self, path: &[u8]) -> bool {
        let many = |segment: &Segment| matches!(segment, Segment::AnyNumber);
        path.starts_with(b"/") && fits(&self.0, parts::segments(path), many, Segment::fits)
    }

    /// What every fitting path has for its segment at this place, the first being 0,
    /// if that is known.
    pub(crate) fn literal(&self, place: usize) -> Option<&[u8]> {
        let moved = |segment: &Segment| matches!(segment, Segment::AnyNumber);
        if self.0.iter().take(place).any(moved) {
            return None;
        }
        match self.0.get(place)? {
            Segment::Literal(bytes) => Some(bytes),
            Segment::Glob(_) | Segment::AnyNumber => None,
        }
    }
}

impl Segment {
    fn new(segment: &str) -> Result<Self, TextError> {
        match segment {
            "**" => Ok(Self::AnyNumber),
            _ if segment.contains("**") => Err(TextError::StarsInSegment),
            _ if segment.contains('*') => Ok(Self::Glob(segment.as_bytes().into())),
            _ => Ok(Self::Literal(segment.as_bytes().into())),
        }
    }

    fn fits(&self, segment: &[u8]) -> bool {
        match self {
            Self::Literal(literal) => **literal == *segment,
            Self::Glob(glob) => like(glob, segment.iter().copied()),
            Self::AnyNumber => true,
        }
    }
}

/// Whether a text looks like a glob: `*` stands for any bytes, none included.
pub(crate) fn like(glob: &[u8], text: impl Iterator<Item = u8> + Clone) -> bool {
    fits(
        glob,
        text,
        |&wanted| wanted == b'*',
        |&wanted, byte| wanted == byte,
    )
}

/// Whether items fit a pattern, some of whose items stand for many.
///
/// Goes back to the last such item only: whatever an earlier one could have
/// taken, the last one can take as well. At most length times length steps.
fn fits<P, I: Iterator<Item: Copy> + Clone>(
    pattern: &[P],
    items: I,
    many: impl Fn(&P) -> bool,
    one: impl Fn(&P, I::Item) -> bool,
) -> bool {
    let (mut pattern, mut items) = (pattern, items);
    let mut retry: Option<(&[P], I)> = None;
    loop {
        let mut ahead = items.clone();
        match (pattern.split_first(), ahead.next()) {
            (Some((first, [])), _) if many(first) => return true,
            (Some((first, after)), _) if many(first) => {
                retry = Some((after, items.clone()));
                pattern = after;
                continue;
            }
            (Some((first, after)), Some(item)) if one(first, item) => {
                (pattern, items) = (after, ahead);
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((after, from)) = &mut retry else {
            return false;
        };
        if from.next().is_none() {
            return false;
        }
        (pattern, items) = (after, from.clone());
    }
}

/// A host, or everything below one: `*.example.com` fits `a.example.com` and
/// `a.b.example.com`, not `example.com`. Case does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// This host.
    Exactly(Box<[u8]>),
    /// A host that ends like this; the first byte is a dot.
    Below(Box<[u8]>),
}

impl HostPattern {
    /// Reads a pattern.
    pub fn new(pattern: &str) -> Result<Self, TextError> {
        let name = pattern.strip_prefix("*.").unwrap_or(pattern);
        text::value(name)?;
        if name.contains(['*', '/', ' ', '@']) {
            return Err(TextError::Host);
        }
        if parts::host_only(name.as_bytes()).len() != name.len() {
            return Err(TextError::PortInHost);
        }
        Ok(match pattern.strip_prefix('*') {
            Some(suffix) => Self::Below(suffix.as_bytes().into()),
            None => Self::Exactly(name.as_bytes().into()),
        })
    }

    /// Whether a host, which has no port any more, fits.
    pub fn fits(&self, host: &[u8]) -> bool {
        match self {
            Self::Exactly(name) => name.eq_ignore_ascii_case(host),
            Self::Below(suffix) => {
                let place = host.len().checked_sub(suffix.len());
                let split = place.and_then(|place| host.split_at_checked(place));
                split.is_some_and(|(label, end)| {
                    !label.is_empty() && suffix.eq_ignore_ascii_case(end)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        PathPattern::new(pattern).unwrap().fits(path.as_bytes())
    }

    #[test]
    fn one_star_stands_for_any_part_of_one_segment() {
        for path in ["/v1/a/x", "/v1//x", "/v1/abc/x?q=/y"] {
            assert!(fits("/v1/*/x", path), "{path}");
        }
        for path in ["/v1/x", "/v1/a/b/x", "/v1/a/x/", "/v1/a/xy"] {
            assert!(!fits("/v1/*/x", path), "{path}");
        }
        assert!(fits("/a*c*e", "/abcde"));
        assert!(fits("/a*c*e", "/ace"));
        assert!(!fits("/a*c*e", "/abcd"));
        assert!(fits("/*.js", "/a.js.js"));
    }

    #[test]
    fn two_stars_stand_for_any_number_of_segments_none_included() {
        for path in ["/v1", "/v1/", "/v1/a", "/v1/a/b?c"] {
            assert!(fits("/v1/**", path), "{path}");
        }
        for path in ["/v10", "/", "/v2/v1"] {
            assert!(!fits("/v1/**", path), "{path}");
        }
        assert!(fits("/**/x/**/y", "/x/y"));
        assert!(fits("/**/x/**/y", "/a/x/b/x/c/y"));
        assert!(!fits("/**/x/**/y", "/a/y/x"));
        assert!(fits("/**", "/"));
    }

    #[test]
    fn a_path_is_compared_to_the_byte() {
        assert!(fits("/v1", "/v1?x"));
        for path in ["/V1", "/v1/", "//v1", "/%761", "v1", "", "*"] {
            assert!(!fits("/v1", path), "{path}");
        }
        assert!(!fits("/**", "*"));
        assert!(
            PathPattern::new("/*/é")
                .unwrap()
                .fits("/\u{0}/é".as_bytes())
        );
    }

    #[test]
    fn a_pattern_that_cannot_mean_what_it_seems_to_is_refused() {
        for (pattern, error) in [
            ("v1", TextError::NoSlash),
            ("", TextError::Empty),
            ("/v1**", TextError::StarsInSegment),
            ("/***", TextError::StarsInSegment),
            ("/v1?x=1", TextError::QueryInPath),
        ] {
            assert_eq!(PathPattern::new(pattern), Err(error), "{pattern}");
        }
    }

    #[test]
    fn a_host_fits_without_regard_to_case() {
        let exact = HostPattern::new("API.example.com").unwrap();
        assert!(exact.fits(b"api.EXAMPLE.com"));
        assert!(!exact.fits(b"a.api.example.com"));
    }

    #[test]
    fn a_star_in_front_of_a_host_stands_for_one_or_more_labels() {
        let below = HostPattern::new("*.example.com").unwrap();
        assert!(below.fits(b"a.example.com"));
        assert!(below.fits(b"a.b.Example.com"));
        for host in ["example.com", ".example.com", "badexample.com", "com"] {
            assert!(!below.fits(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn a_host_with_a_port_or_an_inner_star_is_refused() {
        assert_eq!(HostPattern::new("a.com:80"), Err(TextError::PortInHost));
        for host in ["a.*.com", "*", "*a.com", "a.com/x"] {
            assert_eq!(HostPattern::new(host), Err(TextError::Host), "{host}");
        }
        assert!(HostPattern::new("[2001:db8::1]").is_ok());
    }

    /// What the pattern means, said in the most direct way.
    fn means(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|taken| means(rest, &text[taken..])),
            Some((byte, rest)) => text.first() == Some(byte) && means(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn a_star_takes_exactly_what_can_be_taken(glob in "[ab]{0,2}(\\*[ab]{1,2}){0,3}\\*?", text in "[ab]{0,8}") {
            let path = alloc::format!("/{text}");
            let pattern = alloc::format!("/{glob}");
            prop_assert_eq!(fits(&pattern, &path), means(glob.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn no_pattern_and_no_path_panic(pattern: String, glob in "[*/a]{0,20}", path: Vec<u8>) {
            for pattern in [pattern, glob] {
                if let Ok(pattern) = PathPattern::new(&pattern) {
                    pattern.fits(&path);
                }
                if let Ok(pattern) = HostPattern::new(&pattern) {
                    pattern.fits(&path);
                }
            }
        }
    }
}
