//! Claims of a token, by name.
//!
//! Nothing is verified here: whoever hands a payload over vouches for it.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

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
    let mut claims: Map<String, Value> = serde_json::from_slice(&json).ok()?;
    match claims.remove(name)? {
        Value::String(text) => Some(text.into_bytes()),
        Value::Number(number) => Some(number.to_string().into_bytes()),
        Value::Bool(truth) => Some(truth.to_string().into_bytes()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
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
        let json = r#"{"sub": "alice", "https://a.example/plan": "pro", "seats": 20, "admin": true,
            "roles": ["a"], "none": null}"#;
        let get = |name| of(json, name);
        assert_eq!(get("sub").as_deref(), Some("alice"));
        assert_eq!(get("https://a.example/plan").as_deref(), Some("pro"));
        assert_eq!(get("seats").as_deref(), Some("20"));
        assert_eq!(get("admin").as_deref(), Some("true"));
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
        for payload in ["", "*", "e30", "W10", "eyJhIjoxfQ.x"] {
            assert_eq!(claim(payload.as_bytes(), "a"), None, "{payload}");
        }
    }
}
