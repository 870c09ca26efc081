//! Header lists in the proxy-wasm encoding: the count, all lengths, then the
//! bytes, each name and value followed by a NUL.
//!
//! Read where they lie, without a copy: a request has twenty headers and the
//! rules look at two. Names and values are bytes, and a list that is cut short
//! ends early.

use core::iter;

/// Bytes of a length field.
const LENGTH: usize = 4;

/// A list as the host handed it over.
#[derive(Debug, Clone, Default)]
pub struct Pairs(Vec<u8>);

impl Pairs {
    /// The list in these bytes.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Every name and value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (lengths, mut rest) = self.parts().unwrap_or_default();
        let mut lengths = lengths.chunks_exact(LENGTH).map_while(length);
        iter::from_fn(move || {
            let name = take(&mut rest, lengths.next()?)?;
            let value = take(&mut rest, lengths.next()?)?;
            Some((name, value))
        })
    }

    /// The first value of this name.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find_map(|(n, value)| (n == name.as_bytes()).then_some(value))
    }

    /// The lengths, and the bytes after them.
    fn parts(&self) -> Option<(&[u8], &[u8])> {
        let (count, rest) = self.0.split_at_checked(LENGTH)?;
        rest.split_at_checked(length(count)?.checked_mul(2 * LENGTH)?)
    }
}

fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// Splits a name or value off the front, and the NUL after it.
fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (part, after) = rest.split_at_checked(length)?;
    *rest = after.split_first()?.1;
    Some(part)
}

/// A list for the host.
#[must_use]
pub fn encode(pairs: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)]) -> Vec<u8> {
    let length = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
    let mut out = Vec::new();
    out.extend_from_slice(&length(pairs.len()));
    for (name, value) in pairs {
        out.extend_from_slice(&length(name.as_ref().len()));
        out.extend_from_slice(&length(value.as_ref().len()));
    }
    for (name, value) in pairs {
        for part in [name.as_ref(), value.as_ref()] {
            out.extend_from_slice(part);
            out.push(0);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<u8> {
        encode(&[(":path", "/a"), ("x", ""), ("x", "2")])
    }

    #[test]
    fn what_was_encoded_is_read_back_in_order() {
        let pairs = Pairs::new(list());
        let read: Vec<_> = pairs.iter().collect();
        let expected: [(&[u8], &[u8]); 3] = [(b":path", b"/a"), (b"x", b""), (b"x", b"2")];
        assert_eq!(read, expected);
        assert_eq!(pairs.first("x"), Some(&b""[..]));
        assert_eq!(pairs.first("y"), None);
    }

    #[test]
    fn a_list_cut_short_anywhere_ends_early() {
        let whole = list();
        for end in 0..whole.len() {
            let cut = whole.iter().copied().take(end).collect();
            assert!(Pairs::new(cut).iter().count() < 3, "cut at {end}");
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_no_pairs() {
        for byte in [0x7f, 0xff] {
            assert_eq!(Pairs::new(vec![byte; 64]).iter().count(), 0);
        }
    }
}
