//! What is kept of a token: its SHA-256, so that who reads the token file can do
//! nothing with it.
//!
//! One fast hash is enough. Slow ones are for what people think up and others
//! guess; a token is 256 random bits, and nobody tries 2^255 of them at any
//! speed. And every request is hashed: a slow hash would be the cheapest way to
//! keep the service busy.

use std::{fmt, str::FromStr};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer, de::Error};
use subtle::ConstantTimeEq;

/// Bytes of a digest.
const LENGTH: usize = 32;

/// The SHA-256 of a token, written as 64 hexadecimal digits.
///
/// Compared in constant time, so that how long it takes tells nothing.
#[derive(Clone, Copy)]
pub struct Digest([u8; LENGTH]);

/// What was written is no digest. It is not repeated: it may be a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected the SHA-256 of a token, 64 hexadecimal digits; `weir token new` prints it beside \
     the token"
)]
pub struct NotADigest;

impl Digest {
    /// The digest of a token.
    pub fn of(token: &[u8]) -> Self {
        let mut bytes = [0; LENGTH];
        for (to, from) in bytes.iter_mut().zip(digest(&SHA256, token).as_ref()) {
            *to = *from;
        }
        Self(bytes)
    }

    /// Its first 8 bytes: enough to find it by. They are no secret, for they
    /// help nobody to find the token.
    pub(super) const fn head(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let mut bytes = [0; LENGTH];
        let pairs = text.as_bytes().chunks(2);
        if text.len() != 2 * LENGTH {
            return Err(NotADigest);
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let digits = str::from_utf8(pair).map_err(|_| NotADigest)?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(NotADigest);
            }
            *byte = u8::from_str_radix(digits, 16).map_err(|_| NotADigest)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The empty text's, as FIPS 180-4 has it.
    const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn it_is_sha_256_and_reads_back_as_it_was_written() {
        let digest = Digest::of(b"");
        assert_eq!(digest.to_string(), OF_NOTHING);
        assert_eq!(OF_NOTHING.parse(), Ok(digest));
        assert_eq!(OF_NOTHING.to_uppercase().parse(), Ok(digest));
        assert_ne!(digest, Digest::of(b"a"));
    }

    #[test]
    fn what_is_no_digest_is_not_repeated() {
        let long = format!("{OF_NOTHING}00");
        let signed = OF_NOTHING.replace("e3b0", "+3b0");
        let wide = "é".repeat(32);
        for wrong in ["", "weir_secret", &long, &signed, &wide] {
            let error = wrong.parse::<Digest>().unwrap_err().to_string();
            assert!(wrong.is_empty() || !error.contains(wrong), "{error}");
        }
    }
}
