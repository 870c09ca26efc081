//! Claims of a token, by name.
//!
//! Nothing is verified here: whoever hands a payload over vouches for it.

use core::fmt;
use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Tokens have no padding (RFC 7515, section 2); some hosts add it.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The value of a claim in a payload, which is JSON in base64url: a text as it is, a
/// number or a boolean as JSON has it. None if it is not there, is something else, or
/// the payload is none.
#[must_use]
pub fn claim(payload: &[u8], name: &str) -> Option<Vec<u8>> {
    let json = BASE64URL.decode(payload.trim_ascii()).ok()?;
    let mut read = serde_json::Deserializer::from_slice(&json);
    let value = One(name).deserialize(&mut read).ok()??.get();
    read.end().ok()?;
    match value.as_bytes().first()? {
        b'"' => serde_json::from_str(value).ok().map(String::into_bytes),
        b'{' | b'[' | b'n' => None,
        _ => Some(value.as_bytes().to_vec()),
    }
}

/// One member of an object, as it is written; all others are passed over.
struct One<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of claims")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut claims: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = claims.next_key::<Cow<'de, str>>()? {
            if name == self.0 {
                found = Some(claims.next_value()?);
            } else {
                claims.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str, name: &str) -> Option<String> {
        let payload = BASE64URL.encode(json);
        claim(payload.as_bytes(), name).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    #[test]
    fn a_claim_is_text_a_number_or_a_boolean() {
        let json = r#"{"sub": "al\u0069ce", "https://a.example/plan": "pro", "seats": 20,
            "share": 0.5, "admin": true, "s\u0070": "x", "roles": ["a"], "none": null}"#;
        let get = |name| of(json, name);
        assert_eq!(get("sub").as_deref(), Some("alice"));
        assert_eq!(get("https://a.example/plan").as_deref(), Some("pro"));
        assert_eq!(get("seats").as_deref(), Some("20"));
        assert_eq!(get("share").as_deref(), Some("0.5"));
        assert_eq!(get("admin").as_deref(), Some("true"));
        assert_eq!(get("sp").as_deref(), Some("x"));
        for name in ["roles", "none", "absent"] {
            assert_eq!(get(name), None, "{name}");
        }
    }

    #[test]
    fn padding_makes_no_difference() {
        // {"a":"é"}: its bytes need padding, and a letter of the URL's alphabet.
        assert_eq!(
            claim(b"eyJhIjoiw6kifQ", "a").as_deref(),
            Some("é".as_bytes())
        );
        assert_eq!(
            claim(b"eyJhIjoiw6kifQ==", "a").as_deref(),
            Some("é".as_bytes())
        );
    }

    #[test]
    fn what_is_no_payload_has_no_claims() {
        for payload in ["", "*", "e30", "W10", "eyJhIjoxfQ.x", "eyJhIjoxfXg"] {
            assert_eq!(claim(payload.as_bytes(), "a"), None, "{payload}");
        }
    }
}
