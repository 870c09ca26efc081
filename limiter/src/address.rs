//! Address blocks.

use core::net::IpAddr;

/// A block of addresses, as in `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// Its first address.
    pub base: IpAddr,
    /// Leading bits that an address shares with it: at most 32 or 128.
    pub bits: u8,
}
