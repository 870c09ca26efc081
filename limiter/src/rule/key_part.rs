//! What a count is kept per.

use alloc::{boxed::Box, string::String};

use super::Attribute;

/// One part of a rule's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// The client's address, cut to a prefix.
    Address {
        /// Leading bits that count for an IPv4 address: 0 to 32.
        v4_bits: u8,
        /// Leading bits that count for an IPv6 address: 0 to 128.
        v6_bits: u8,
    },
    /// A header, by its lower-case name.
    Header(String),
    /// A cookie.
    Cookie(String),
    /// A query parameter.
    Query(String),
    /// The whole path, without its query.
    Path,
    /// One segment of the path; the first is 1.
    PathSegment(u16),
    /// The request method.
    Method,
    /// The host, without its port.
    Host,
    /// What the host knows of the request.
    Attribute(Attribute),
    /// A fixed value.
    Constant(String),
    /// This part, and one count for all requests that have no value for it: not
    /// the one of those whose value is empty. Never optional itself.
    Optional(Box<KeyPart>),
}
