//! Addresses: blocks of them, and the part of one that a count is kept per.
//!
//! An IPv4 address that comes dressed as IPv6 (`::ffff:192.0.2.1`) is the IPv4
//! address, everywhere. A block of IPv6 addresses therefore holds no IPv4
//! address, `::/0` included.

use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

mod forwarded;

pub use forwarded::client_address;

/// Leading bits that all dressed-up IPv4 addresses have in common.
const MAPPED_BITS: u8 = 96;

/// A block of addresses, as in `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    base: IpAddr,
    bits: u8,
}

/// Why a text is not a block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    /// What comes before the slash is no address.
    #[error("expected an address, or one with a prefix length, as in 10.0.0.0/8")]
    Address,
    /// What comes after the slash is no number of bits, or too many.
    #[error("expected a prefix length of 0 to {max}")]
    Bits {
        /// All the bits that such an address has.
        max: u8,
    },
    /// Bits beyond the prefix are set: one of the two numbers is mistaken.
    #[error("the address has bits beyond its prefix; the block it lies in is {block}")]
    BeyondPrefix {
        /// The block without them.
        block: Cidr,
    },
}

impl Cidr {
    /// The block of this prefix length that `address` lies in; none if it has
    /// fewer bits than that.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let (base, bits) = match address.to_canonical() {
            v4 @ IpAddr::V4(_) if address.is_ipv6() && bits >= MAPPED_BITS => {
                (v4, bits - MAPPED_BITS)
            }
            IpAddr::V4(_) if address.is_ipv6() => (address, bits),
            plain => (plain, bits),
        };
        (bits <= width(base)).then(|| Self {
            base: cut(base, bits),
            bits,
        })
    }

    /// Its first address.
    pub const fn base(&self) -> IpAddr {
        self.base
    }

    /// Leading bits that an address shares with it: at most 32 or 128.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether `address` lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.base.is_ipv4() && cut(address, self.bits) == self.base
    }
}

/// The first address of the block that shares this many leading bits with
/// `address`: what a count per network is kept per.
///
/// IPv6 has a length of its own because one customer commonly holds a /64, and
/// with it more addresses than anyone can count. More bits than an address has
/// are all of them.
pub fn prefix(address: IpAddr, v4_bits: u8, v6_bits: u8) -> IpAddr {
    match address.to_canonical() {
        v4 @ IpAddr::V4(_) => cut(v4, v4_bits),
        v6 @ IpAddr::V6(_) => cut(v6, v6_bits),
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn cut(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(v4) => {
            let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & !rest))
        }
        IpAddr::V6(v6) => {
            let rest = u128::MAX.checked_shr(bits).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !rest))
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    /// A block, or one address, which is a block of its own.
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| CidrError::Address)?;
        let max = width(address);
        let bits = bits.map_or(Some(max), prefix_length);
        let block = bits.and_then(|bits| Self::new(address, bits));
        let block = block.ok_or(CidrError::Bits { max })?;
        let same_kind = if block.base.is_ipv4() {
            address.to_canonical()
        } else {
            address
        };
        if block.base == same_kind {
            Ok(block)
        } else {
            Err(CidrError::BeyondPrefix { block })
        }
    }
}

/// Digits only: a sign or a leading zero is somebody's mistake.
fn prefix_length(text: &str) -> Option<u8> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    (plain && !padded).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

#[cfg(test)]
mod tests;
