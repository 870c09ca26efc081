//! What a rule counts per, as words: `ip`, `header.x-api-key`, `path[1]`.
//!
//! | word | counts per |
//! |---|---|
//! | `ip` | IPv4 address, IPv6 /64 |
//! | `ip/24` | IPv4 /24, IPv6 /64 |
//! | `ip/56` | IPv4 address, IPv6 /56: more than 32 bits are IPv6's |
//! | `ip/24/56` | IPv4 /24, IPv6 /56 |
//! | `header.x`, `cookie.x`, `query.x` | its value |
//! | `path`, `path[2]` | the whole path, its second segment |
//! | `method`, `host` | the method, the host without its port |
//! | `country`, `asn`, `ja4`, `jwt.sub` | what the host knows: the client's country, network, handshake, a claim of its token |
//! | `header.x?` | its value, or that it has none: so any part that may be missing |
//! | `constant:x` | nothing: names the counter apart from others |

use std::fmt;

use limiter::rule::{Attribute, KeyPart, text};

use super::{
    at::{At, quoted},
    diagnostic::{Notes, Place},
    numbers::digits,
    suggest,
    tree::Node,
};

/// The leading bits that count for an address unless the rule says otherwise.
const V4_BITS: u8 = 32;
const V6_BITS: u8 = 64;

const WORDS: &[&str] = &[
    "ip",
    "ip/24",
    "ip/24/56",
    "header.NAME",
    "cookie.NAME",
    "query.NAME",
    "path",
    "path[1]",
    "method",
    "host",
    "country",
    "asn",
    "ja4",
    "jwt.CLAIM",
    "header.NAME?",
    "constant:TEXT",
];

const FIXED: &[&str] = &["ip", "path", "method", "host", "country", "asn", "ja4"];

/// Reads a key: one part or a list of them.
pub(super) fn read(at: &At<'_>) -> Option<Vec<KeyPart>> {
    let parts = at.items(&suggest::list(WORDS))?;
    parts
        .iter()
        .map(part)
        .collect::<Vec<_>>()
        .into_iter()
        .collect()
}

/// Reads one part that stands in no file; else what is wrong with it.
pub(super) fn parse(word: &str) -> Result<KeyPart, String> {
    let place = Place { line: 1, column: 1 };
    let notes = Notes::default();
    let node = Node::scalar(word, place);
    part(&At::root(&node, &notes)).ok_or_else(|| {
        let problems = notes.into_problems("").0.into_iter();
        let messages: Vec<_> = problems.map(|problem| problem.message).collect();
        messages.join("; ")
    })
}

fn part(at: &At<'_>) -> Option<KeyPart> {
    let word = at.text(&suggest::list(WORDS))?;
    if let Some(value) = word.strip_prefix("constant:") {
        at.checked(text::value(value))?;
        return Some(KeyPart::Constant(value.into()));
    }
    match word.strip_suffix('?') {
        Some(word) => Some(KeyPart::Optional(Box::new(plain(at, word)?))),
        None => plain(at, word),
    }
}

fn plain(at: &At<'_>, word: &str) -> Option<KeyPart> {
    if let Some((kind, name)) = word.split_once('.') {
        return named(at, kind, name);
    }
    if let Some(segment) = word.strip_prefix("path[") {
        return path_segment(at, segment);
    }
    if let Some(bits) = word.strip_prefix("ip/") {
        return address(at, bits);
    }
    match word {
        "ip" => Some(KeyPart::Address {
            v4_bits: V4_BITS,
            v6_bits: V6_BITS,
        }),
        "path" => Some(KeyPart::Path),
        "method" => Some(KeyPart::Method),
        "host" => Some(KeyPart::Host),
        "country" => Some(KeyPart::Attribute(Attribute::Country)),
        "asn" => Some(KeyPart::Attribute(Attribute::Asn)),
        "ja4" => Some(KeyPart::Attribute(Attribute::Ja4)),
        other => unknown(at, other, FIXED),
    }
}

fn unknown(at: &At<'_>, word: &str, near: &[&str]) -> Option<KeyPart> {
    let hint = suggest::near(word, near);
    let hint = hint.map_or(String::new(), |near| format!(", did you mean {near}"));
    let part = quoted(word);
    at.refuse(format_args!(
        "unknown part of a key, {part}{hint}; allowed: {}",
        suggest::list(WORDS)
    ))
}

fn named(at: &At<'_>, kind: &str, name: &str) -> Option<KeyPart> {
    match kind {
        "header" | "cookie" | "query" | "jwt" if name.is_empty() => {
            at.expected(format_args!("a name after {kind}."))
        }
        "header" => {
            let name = name.to_ascii_lowercase();
            at.checked(text::header_name(&name))?;
            Some(KeyPart::Header(name))
        }
        "cookie" => {
            at.checked(text::token(name))?;
            Some(KeyPart::Cookie(name.into()))
        }
        "query" => {
            at.checked(text::value(name))?;
            Some(KeyPart::Query(name.into()))
        }
        "jwt" => {
            at.checked(text::value(name))?;
            Some(KeyPart::Attribute(Attribute::Jwt(name.into())))
        }
        other => unknown(at, other, &["header", "cookie", "query", "jwt"]),
    }
}

fn path_segment(at: &At<'_>, rest: &str) -> Option<KeyPart> {
    let number = rest.strip_suffix(']').and_then(digits);
    let segment = number.and_then(|number| u16::try_from(number).ok());
    match segment {
        Some(segment @ 1..) => Some(KeyPart::PathSegment(segment)),
        _ => at.expected("path[N], the segments of a path counted from 1 to 65535"),
    }
}

fn address(at: &At<'_>, bits: &str) -> Option<KeyPart> {
    let number = |text: &str| digits(text).and_then(|number| u8::try_from(number).ok());
    let read = match bits.split_once('/') {
        Some((v4, v6)) => number(v4).zip(number(v6)),
        None => number(bits).map(|bits| match bits {
            0..=32 => (bits, V6_BITS),
            _ => (V4_BITS, bits),
        }),
    };
    match read {
        Some((v4_bits @ ..=32, v6_bits @ ..=128)) => Some(KeyPart::Address { v4_bits, v6_bits }),
        _ => at.expected("ip/24 (IPv4, up to 32), ip/56 (IPv6, 33 to 128) or both, ip/24/56"),
    }
}

/// A part of a key as a rule file has it.
pub(super) struct Written<'a>(pub(super) &'a KeyPart);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            KeyPart::Address {
                v4_bits: V4_BITS,
                v6_bits: V6_BITS,
            } => f.write_str("ip"),
            KeyPart::Address { v4_bits, v6_bits } => write!(f, "ip/{v4_bits}/{v6_bits}"),
            KeyPart::Header(name) => write!(f, "header.{name}"),
            KeyPart::Cookie(name) => write!(f, "cookie.{name}"),
            KeyPart::Query(name) => write!(f, "query.{name}"),
            KeyPart::Path => f.write_str("path"),
            KeyPart::PathSegment(segment) => write!(f, "path[{segment}]"),
            KeyPart::Method => f.write_str("method"),
            KeyPart::Host => f.write_str("host"),
            KeyPart::Attribute(attribute) => attribute.fmt(f),
            KeyPart::Constant(value) => write!(f, "constant:{value}"),
            KeyPart::Optional(part) => write!(f, "{}?", Written(part)),
        }
    }
}
