//! What a host knows of a request that the request does not say itself.

use alloc::string::String;
use core::{fmt, str::FromStr};

use super::text::{self, TextError};

/// What a host knows of a request: where its address lies, what its connection
/// looks like, whose token it bears. A host that does not know it has no value,
/// and a rule that counts per it does not apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// The country of the client's address: two letters or digits in upper case, as
    /// ISO 3166-1 alpha-2 has them.
    Country,
    /// The autonomous system of the client's address: its number in decimal.
    Asn,
    /// The JA4 fingerprint of the client's TLS handshake, in lower case.
    Ja4,
    /// A claim of the client's token, by its name: a text as it is, a number or a
    /// boolean as JSON has it (RFC 7519, section 4).
    Jwt(String),
}

/// A text that names no attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// None that this release knows.
    #[error("expected country, asn, ja4 or jwt.CLAIM")]
    Unknown,
    /// A claim whose name cannot be one.
    #[error("jwt: {0}")]
    Claim(TextError),
}

impl Attribute {
    /// Checks what a value of it may be compared with.
    pub fn check(&self, value: &str) -> Result<(), AttributeValueError> {
        let (good, error) = match self {
            Self::Country => (
                value.len() == 2
                    && value
                        .bytes()
                        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
                AttributeValueError::Country,
            ),
            Self::Asn => (
                value
                    .parse::<u32>()
                    .is_ok_and(|_| value == "0" || !value.starts_with(['0', '+'])),
                AttributeValueError::Asn,
            ),
            Self::Ja4 => (
                !value.is_empty()
                    && value
                        .bytes()
                        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'_')),
                AttributeValueError::Ja4,
            ),
            Self::Jwt(_) => return Ok(()),
        };
        if good { Ok(()) } else { Err(error) }
    }
}

/// A value that an attribute never has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeValueError {
    /// A country is two letters.
    #[error("expected a country as two letters in upper case, as in DE")]
    Country,
    /// An autonomous system is a number.
    #[error("expected the number of an autonomous system, as in 64500")]
    Asn,
    /// A fingerprint has digits and small letters.
    #[error("expected a JA4 fingerprint, as in t13d1516h2_8daaf6152771_02713d6af862")]
    Ja4,
}

/// As rule files and messages have it: `country`, `asn`, `ja4`, `jwt.CLAIM`.
impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Country => f.write_str("country"),
            Self::Asn => f.write_str("asn"),
            Self::Ja4 => f.write_str("ja4"),
            Self::Jwt(claim) => write!(f, "jwt.{claim}"),
        }
    }
}

/// The inverse of what is displayed.
impl FromStr for Attribute {
    type Err = AttributeError;

    fn from_str(name: &str) -> Result<Self, AttributeError> {
        match name {
            "country" => Ok(Self::Country),
            "asn" => Ok(Self::Asn),
            "ja4" => Ok(Self::Ja4),
            _ => {
                let claim = name.strip_prefix("jwt.").ok_or(AttributeError::Unknown)?;
                text::value(claim).map_err(AttributeError::Claim)?;
                Ok(Self::Jwt(claim.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_attribute_reads_back_from_its_name() {
        for name in [
            "country",
            "asn",
            "ja4",
            "jwt.sub",
            "jwt.https://a.example/plan",
        ] {
            let read: Attribute = name.parse().unwrap();
            assert_eq!(read.to_string(), name);
        }
        assert_eq!("Country".parse::<Attribute>(), Err(AttributeError::Unknown));
        assert_eq!(
            "jwt.".parse::<Attribute>(),
            Err(AttributeError::Claim(TextError::Empty))
        );
    }

    #[test]
    fn a_value_that_no_request_has_is_refused() {
        for (attribute, good, bad) in [
            (Attribute::Country, "DE", "de"),
            (Attribute::Country, "T1", "DEU"),
            (Attribute::Asn, "64500", "AS64500"),
            (Attribute::Asn, "0", "064500"),
            (Attribute::Asn, "4294967295", "4294967296"),
            (
                Attribute::Ja4,
                "t13d1516h2_8daaf6152771_02713d6af862",
                "T13",
            ),
        ] {
            assert_eq!(attribute.check(good), Ok(()), "{good}");
            assert!(attribute.check(bad).is_err(), "{bad}");
        }
    }
}
