//! The settings of one filter: JSON, all of it optional, nothing unknown.

use core::fmt;
use core::ops::RangeInclusive;

use limiter::edge::Settings;
use limiter::rule::{Attribute, response, text::header_name};
use limiter::time::Micros;
use serde::Deserialize;

use crate::explain::Explain;

/// Valid settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The host's name for the aggregator. Default: `weir_aggregator`.
    pub cluster: String,
    /// The `host` header of calls to it. Default: `weir`.
    pub authority: String,
    /// The bearer token for it, if it wants one. Default: none.
    pub token: Option<Secret>,
    /// How long a call to it may take, in milliseconds: 1 to 60 000. Default: 1 000.
    pub timeout_ms: u32,
    /// Time between two flushes, in milliseconds: 50 to 60 000. Default: 1 000.
    pub flush_interval_ms: u32,
    /// The most keys that one worker holds: 16 to 10 000 000. Default: 100 000.
    pub keys_max: u32,
    /// The place this runs in, for people to read. Default: the host's own name.
    pub pop: Option<String>,
    /// Who is told why requests are decided as they are: by `explain_header`, the name
    /// of a response header, and `explain_log`. Default: nobody.
    pub explain: Explain,
    /// Which headers carry what the host knows of a request. Default: none.
    pub attributes: Attributes,
}

/// The headers that carry what the host knows of a request, by their lower-case
/// names. Something in front of the filter must set them, whatever a client sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    country: Option<String>,
    asn: Option<String>,
    ja4: Option<String>,
    jwt: Option<String>,
}

impl Attributes {
    /// The header that carries an attribute: of a claim the token's whole payload.
    #[must_use]
    pub fn header(&self, attribute: &Attribute) -> Option<&str> {
        match attribute {
            Attribute::Country => self.country.as_deref(),
            Attribute::Asn => self.asn.as_deref(),
            Attribute::Ja4 => self.ja4.as_deref(),
            Attribute::Jwt(_) => self.jwt.as_deref(),
        }
    }
}

/// What is sent and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

/// Why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Settings as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    cluster: Option<String>,
    authority: Option<String>,
    token: Option<String>,
    timeout_ms: Option<u32>,
    flush_interval_ms: Option<u32>,
    keys_max: Option<u32>,
    pop: Option<String>,
    explain_header: Option<String>,
    explain_log: bool,
    attributes: RawAttributes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawAttributes {
    country: Option<String>,
    asn: Option<String>,
    ja4: Option<String>,
    jwt: Option<String>,
}

impl Config {
    /// Reads settings; nothing but white space is all defaults.
    ///
    /// # Errors
    /// Says which field is wrong and what is allowed.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        let raw = match bytes.trim_ascii().first() {
            None => Raw::default(),
            // A list would do for serde, field by field.
            Some(b'[') => return Err(ConfigError("expected an object, as in {}".to_owned())),
            Some(_) => {
                serde_json::from_slice(bytes).map_err(|error| ConfigError(error.to_string()))?
            }
        };
        Self::try_from(raw)
    }

    /// What bounds a source under these settings. The seeds are random, and
    /// secret.
    #[must_use]
    pub fn settings(&self, hash_seeds: [u64; 4]) -> Settings {
        Settings {
            keys_max: usize::try_from(self.keys_max).unwrap_or(usize::MAX),
            flush_interval: Micros::from_millis(u64::from(self.flush_interval_ms)),
            hash_seeds,
        }
    }
}

impl TryFrom<Raw> for Config {
    type Error = ConfigError;

    fn try_from(raw: Raw) -> Result<Self, ConfigError> {
        Ok(Self {
            cluster: text("cluster", raw.cluster)?.unwrap_or_else(|| "weir_aggregator".to_owned()),
            authority: text("authority", raw.authority)?.unwrap_or_else(|| "weir".to_owned()),
            token: text("token", raw.token)?.map(Secret),
            timeout_ms: number("timeout_ms", raw.timeout_ms, 1_000, 1..=60_000)?,
            flush_interval_ms: flush_interval_ms("flush_interval_ms", raw.flush_interval_ms)?,
            keys_max: keys_max("keys_max", raw.keys_max)?,
            pop: text("pop", raw.pop)?,
            explain: Explain {
                header: response_header("explain_header", raw.explain_header)?,
                log: raw.explain_log,
            },
            attributes: raw.attributes.try_into()?,
        })
    }
}

impl TryFrom<RawAttributes> for Attributes {
    type Error = ConfigError;

    fn try_from(raw: RawAttributes) -> Result<Self, ConfigError> {
        Ok(Self {
            country: header("attributes.country", raw.country)?,
            asn: header("attributes.asn", raw.asn)?,
            ja4: header("attributes.ja4", raw.ja4)?,
            jwt: header("attributes.jwt", raw.jwt)?,
        })
    }
}

/// The name of a header, in lower case from now on.
fn header(field: &str, name: Option<String>) -> Result<Option<String>, ConfigError> {
    let Some(name) = name.map(|name| name.to_ascii_lowercase()) else {
        return Ok(None);
    };
    match header_name(&name) {
        Ok(()) => Ok(Some(name)),
        Err(error) => Err(ConfigError(format!("`{field}` names a header: {error}"))),
    }
}

/// Time between two flushes in milliseconds, by a host's name for the field.
pub(crate) fn flush_interval_ms(field: &str, value: Option<u32>) -> Result<u32, ConfigError> {
    number(field, value, 1_000, 50..=60_000)
}

/// The most keys that one source holds, by a host's name for the field.
pub(crate) fn keys_max(field: &str, value: Option<u32>) -> Result<u32, ConfigError> {
    number(field, value, 100_000, 16..=10_000_000)
}

/// Text that is there must say something, in a way that fits a header.
pub(crate) fn text(field: &str, value: Option<String>) -> Result<Option<String>, ConfigError> {
    match value {
        Some(text) if text.is_empty() || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) => {
            Err(ConfigError(format!(
                "`{field}` must be printable ASCII, one character or more"
            )))
        }
        value => Ok(value),
    }
}

/// A header that a response can be given: not one of those that frame it.
fn response_header(field: &str, value: Option<String>) -> Result<Option<String>, ConfigError> {
    let Some(name) = value else { return Ok(None) };
    let name = name.to_ascii_lowercase();
    match response::header(&name, "") {
        Ok(()) => Ok(Some(name)),
        Err(error) => Err(ConfigError(format!("`{field}` is {name:?}: {error}"))),
    }
}

fn number(
    field: &str,
    value: Option<u32>,
    default: u32,
    allowed: RangeInclusive<u32>,
) -> Result<u32, ConfigError> {
    let value = value.unwrap_or(default);
    if allowed.contains(&value) {
        Ok(value)
    } else {
        let (least, most) = allowed.into_inner();
        Err(ConfigError(format!(
            "`{field}` is {value}, must be {least} to {most}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> String {
        Config::parse(json.as_bytes())
            .map(|config| format!("{config:?}"))
            .map_or_else(|error| error.to_string(), |taken| format!("taken: {taken}"))
    }

    #[test]
    fn no_settings_are_all_defaults() {
        let empty = Config::parse(b" \n");
        assert_eq!(empty, Config::parse(b"{}"));
        assert_eq!(
            empty.map(|config| config.cluster),
            Ok("weir_aggregator".to_owned())
        );
    }

    #[test]
    fn an_unknown_field_is_named_with_those_that_are_known() {
        let error = refused(r#"{"clutser": "x"}"#);
        assert!(
            error.contains("clutser") && error.contains("`cluster`"),
            "{error}"
        );
        assert!(error.contains("line 1 column"), "{error}");
    }

    #[test]
    fn a_number_out_of_range_is_told_the_range() {
        assert_eq!(
            refused(r#"{"timeout_ms": 0}"#),
            "`timeout_ms` is 0, must be 1 to 60000"
        );
    }

    #[test]
    fn a_header_that_carries_an_attribute_is_named_in_any_case() {
        let config = Config::parse(br#"{"attributes": {"country": "X-Country"}}"#).unwrap();
        let of = |attribute| config.attributes.header(&attribute);
        assert_eq!(of(Attribute::Country), Some("x-country"));
        assert_eq!(of(Attribute::Jwt("sub".to_owned())), None);
        assert_eq!(
            refused(r#"{"attributes": {"asn": "x asn"}}"#),
            "`attributes.asn` names a header: expected a token: letters, digits and any of !#$%&'*+-.^_`|~"
        );
    }

    #[test]
    fn a_token_cannot_smuggle_in_a_header() {
        let error = refused("{\"token\": \"a\\r\\nx: y\"}");
        assert_eq!(
            error,
            "`token` must be printable ASCII, one character or more"
        );
    }

    #[test]
    fn a_token_is_sent_as_it_is_and_shown_nowhere() {
        let config = Config::parse(br#"{"token": "weir_abc"}"#).unwrap();
        assert!(!format!("{config:?}").contains("weir_abc"));
        let token = config.token.as_ref().map(Secret::reveal);
        assert_eq!(token, Some("weir_abc"));
    }

    #[test]
    fn nobody_is_told_why_unless_a_header_or_the_log_is_named() {
        let explain = |json: &str| Config::parse(json.as_bytes()).unwrap().explain;
        assert!(!explain("{}").is_on());
        let told = explain(r#"{"explain_header": "X-Why", "explain_log": true}"#);
        assert_eq!((told.header.as_deref(), told.log), (Some("x-why"), true));
        for name in ["content-length", "x y", ""] {
            let error = refused(&format!("{{\"explain_header\": {name:?}}}"));
            assert!(error.starts_with("`explain_header` is"), "{error}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        assert!(refused("cluster: weir").contains("line 1 column 1"));
        assert_eq!(refused(" []"), "expected an object, as in {}");
    }
}
