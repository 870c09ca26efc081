//! How the parts of a key go into a counter's name.

use alloc::string::ToString;
use core::{net::IpAddr, slice, str};

use crate::{
    address,
    key::KeyHasher,
    request::{Request, parts},
    rule::KeyPart,
};

/// Takes in what a part is, so that a rule that counts per something else
/// counts anew.
pub(super) fn describe(hasher: &mut KeyHasher, part: &KeyPart) {
    match part {
        KeyPart::Address { v4_bits, v6_bits } => hasher.value(&[1, *v4_bits, *v6_bits]),
        KeyPart::Header(name) => named(hasher, 2, name),
        KeyPart::Cookie(name) => named(hasher, 3, name),
        KeyPart::Query(name) => named(hasher, 4, name),
        KeyPart::Path => hasher.value(&[5]),
        KeyPart::PathSegment(place) => {
            hasher.value(&[6]);
            hasher.value(&place.to_be_bytes());
        }
        KeyPart::Method => hasher.value(&[7]),
        KeyPart::Host => hasher.value(&[8]),
        KeyPart::Constant(value) => named(hasher, 9, value),
        KeyPart::Optional(part) => {
            hasher.value(&[10]);
            describe(hasher, part);
        }
        KeyPart::Attribute(attribute) => named(hasher, 11, &attribute.to_string()),
    }
}

fn named(hasher: &mut KeyHasher, kind: u8, name: &str) {
    hasher.value(&[kind]);
    hasher.value(name.as_bytes());
}

/// Takes in a request's value for a part; none if it has none.
#[inline]
pub(super) fn take(hasher: &mut KeyHasher, part: &KeyPart, request: &impl Request) -> Option<()> {
    match part {
        KeyPart::Header(name) => hasher.value(request.header(name)?),
        KeyPart::Address { v4_bits, v6_bits } => {
            take_address(hasher, request.address()?, *v4_bits, *v6_bits);
        }
        KeyPart::Cookie(name) => {
            hasher.value(parts::cookie(request.header("cookie")?, name.as_bytes())?);
        }
        KeyPart::Query(name) => hasher.value_of(parts::query(request.path(), name.as_bytes())?),
        KeyPart::Path => hasher.value(parts::path_only(request.path())),
        KeyPart::PathSegment(place) => {
            hasher.value(parts::segments(request.path()).nth(usize::from(*place).checked_sub(1)?)?);
        }
        KeyPart::Method => hasher.value(request.method()),
        KeyPart::Host => take_host(hasher, request.host()),
        KeyPart::Attribute(attribute) => hasher.value(request.attribute(attribute)?),
        KeyPart::Constant(_) => {}
        // What has no value has not touched the hasher.
        KeyPart::Optional(part) => {
            if take(hasher, part, request).is_none() {
                hasher.missing();
            }
        }
    }
    Some(())
}

/// Takes in the next of the values that a caller names, for a part that
/// requests differ in; none if it is missing or cannot be this part's. The count
/// of those that lack an optional value cannot be named.
pub(super) fn take_named(
    hasher: &mut KeyHasher,
    part: &KeyPart,
    values: &mut slice::Iter<'_, &[u8]>,
) -> Option<()> {
    match part {
        KeyPart::Constant(_) => {}
        KeyPart::Optional(part) => take_named(hasher, part, values)?,
        KeyPart::Address { v4_bits, v6_bits } => {
            let text = str::from_utf8(values.next()?).ok()?;
            take_address(hasher, text.parse().ok()?, *v4_bits, *v6_bits);
        }
        KeyPart::Host => take_host(hasher, values.next()?),
        KeyPart::Path => hasher.value(parts::path_only(values.next()?)),
        KeyPart::Header(_)
        | KeyPart::Cookie(_)
        | KeyPart::Query(_)
        | KeyPart::PathSegment(_)
        | KeyPart::Attribute(_)
        | KeyPart::Method => hasher.value(values.next()?),
    }
    Some(())
}

fn take_address(hasher: &mut KeyHasher, address: IpAddr, v4_bits: u8, v6_bits: u8) {
    match address::prefix(address, v4_bits, v6_bits) {
        IpAddr::V4(v4) => hasher.value(&v4.octets()),
        IpAddr::V6(v6) => hasher.value(&v6.octets()),
    }
}

fn take_host(hasher: &mut KeyHasher, host: &[u8]) {
    let name = parts::host_only(host).iter();
    hasher.value_of(name.map(u8::to_ascii_lowercase));
}
