//! The parts of a path, a host and a header that rules speak of.
//!
//! Nothing is normalised on the quiet. A path is taken to the byte as it was
//! sent: `//`, `/./` and `%61` stay what they are, because a proxy that does not
//! fold them will not have its upstream see them folded either; let the proxy
//! do it, before rules are asked. The two exceptions are what makes a name equal
//! to everyone: a host is compared without case and port (RFC 9110, section
//! 4.2.3), a query parameter after decoding, as the upstream will read it.

/// The path without its query.
pub(crate) fn path_only(path: &[u8]) -> &[u8] {
    path.split(|&byte| byte == b'?').next().unwrap_or(path)
}

/// The segments of a path, without its query. A path that does not begin with
/// a slash has none.
pub(crate) fn segments(path: &[u8]) -> Segments<'_> {
    Segments(path_only(path).strip_prefix(b"/"))
}

/// The segments of a path, one by one: `/a//` has `a`, an empty one, and
/// another empty one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let end = rest.iter().position(|&byte| byte == b'/');
        let (segment, after) = match end.and_then(|end| rest.split_at_checked(end)) {
            Some((segment, after)) => (segment, after.get(1..)),
            None => (rest, None),
        };
        self.0 = after;
        Some(segment)
    }
}

/// The host without its port. Brackets around an IPv6 address stay.
pub(crate) fn host_only(host: &[u8]) -> &[u8] {
    let Some(colon) = host.iter().rposition(|&byte| byte == b':') else {
        return host;
    };
    match host.split_at_checked(colon) {
        Some((name, port)) if port.iter().skip(1).all(u8::is_ascii_digit) => name,
        _ => host,
    }
}

/// The value of a cookie, as sent: the first of that name in a `cookie` header.
pub(crate) fn cookie<'a>(header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    header.split(|&byte| byte == b';').find_map(|pair| {
        let (key, value) = split_once(pair.trim_ascii(), b'=')?;
        (key == name).then_some(value)
    })
}

/// The value of a query parameter: the first whose name, decoded, is `name`.
pub(crate) fn query<'a>(path: &'a [u8], name: &[u8]) -> Option<Decoded<'a>> {
    let (_, query) = split_once(path, b'?')?;
    query.split(|&byte| byte == b'&').find_map(|pair| {
        let (key, value) = split_once(pair, b'=').unwrap_or((pair, b""));
        let named = Decoded(key).eq(name.iter().copied());
        named.then_some(Decoded(value))
    })
}

/// Bytes of a query, decoded as forms are: `+` is a space, `%41` an `A`; a `%`
/// that begins no such code is itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = match self.0 {
            [b'%', high, low, rest @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, rest),
                _ => (b'%', self.0.get(1..)?),
            },
            [b'+', rest @ ..] => (b' ', rest),
            [byte, rest @ ..] => (*byte, rest),
            [] => return None,
        };
        self.0 = rest;
        Some(byte)
    }
}

const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|&byte| byte == at)?;
    let (before, rest) = bytes.split_at_checked(place)?;
    Some((before, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn parts(path: &str) -> Vec<&str> {
        let text = |bytes| core::str::from_utf8(bytes).unwrap();
        segments(path.as_bytes()).map(text).collect()
    }

    #[test]
    fn every_slash_but_the_first_begins_another_segment() {
        assert_eq!(parts("/"), [""]);
        assert_eq!(parts("/a//b/"), ["a", "", "b", ""]);
        assert_eq!(parts("/a/b?c=/d"), ["a", "b"]);
        assert_eq!(parts("*"), [""; 0]);
    }

    #[test]
    fn a_host_is_named_without_its_port() {
        for (host, name) in [
            ("example.com", "example.com"),
            ("example.com:8443", "example.com"),
            ("example.com:", "example.com"),
            ("[2001:db8::1]:8443", "[2001:db8::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("", ""),
        ] {
            assert_eq!(host_only(host.as_bytes()), name.as_bytes(), "{host}");
        }
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let header = b"sid2=x; sid=a=b ;sid=later;empty=";
        assert_eq!(cookie(header, b"sid"), Some(&b"a=b"[..]));
        assert_eq!(cookie(header, b"empty"), Some(&b""[..]));
        assert_eq!(cookie(header, b"si"), None);
    }

    #[test]
    fn a_query_parameter_cannot_hide_behind_another_spelling() {
        let read = |path: &str, name: &str| -> Option<Vec<u8>> {
            query(path.as_bytes(), name.as_bytes()).map(Iterator::collect)
        };
        assert_eq!(read("/x?a=1&key=v%2f+w", "key").unwrap(), b"v/ w");
        assert_eq!(read("/x?%6bey=v", "key").unwrap(), b"v");
        assert_eq!(read("/x?key", "key").unwrap(), b"");
        assert_eq!(read("/x?key=%zz%4", "key").unwrap(), b"%zz%4");
        assert_eq!(read("/x?keys=1", "key"), None);
        assert_eq!(read("/key=1", "key"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_at_all_make_a_reader_panic(bytes: Vec<u8>, name: Vec<u8>) {
            host_only(&bytes);
            cookie(&bytes, &name);
            query(&bytes, &name).map(Iterator::count);
            let slashes = path_only(&bytes).iter().filter(|&&byte| byte == b'/').count();
            prop_assert!(segments(&bytes).count() <= slashes);
        }
    }
}
