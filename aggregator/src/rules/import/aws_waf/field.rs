//! What a statement looks at, and what it makes of it first.

use limiter::rule::{Attribute, KeyPart};

use crate::rules::{at::At, import::report::Draft};

/// A header; the one that names the host is what a rule calls the host.
pub(in crate::rules::import) fn header(name: String) -> KeyPart {
    match name.to_ascii_lowercase() {
        host if host == "host" => KeyPart::Host,
        name => KeyPart::Header(name),
    }
}

/// A part of a key by its `Name`, as it is after its transformations.
pub(super) fn named(
    at: &At<'_>,
    part: fn(String) -> KeyPart,
    draft: &mut Draft,
) -> Result<KeyPart, String> {
    let name = at
        .peek("Name")
        .and_then(|name| name.scalar())
        .ok_or("a Name is missing")?;
    let part = part(name.to_owned());
    transformed(at, &part, draft)?;
    Ok(part)
}

/// What `FieldToMatch` names.
pub(super) fn to_match(at: &At<'_>, draft: &mut Draft) -> Result<KeyPart, String> {
    let entries = at.entries("one field").unwrap_or_default();
    let [entry] = entries else {
        return Err("FieldToMatch names one field".into());
    };
    let inner = at.entry(entry);
    match &*entry.key {
        "UriPath" => Ok(KeyPart::Path),
        "Method" => Ok(KeyPart::Method),
        "SingleHeader" => named(&inner, header, draft),
        "SingleQueryArgument" => named(&inner, KeyPart::Query, draft),
        "JA4Fingerprint" => fingerprint(&inner).map(KeyPart::Attribute),
        other => Err(format!("{other} is nothing that a rule looks at")),
    }
}

/// The handshake's fingerprint, if a request without one is no match.
pub(super) fn fingerprint(at: &At<'_>) -> Result<Attribute, String> {
    match at.peek("FallbackBehavior").and_then(|way| way.scalar()) {
        Some("NO_MATCH") => Ok(Attribute::Ja4),
        _ => {
            Err("JA4Fingerprint: a request without a fingerprint is not taken for one with".into())
        }
    }
}

/// Notes what the `TextTransformations` beside a field change; refuses what would
/// make another value of it.
pub(super) fn transformed(at: &At<'_>, part: &KeyPart, draft: &mut Draft) -> Result<(), String> {
    let Some(list) = at.peek("TextTransformations") else {
        return Ok(());
    };
    for one in list.items("a list of transformations").unwrap_or_default() {
        let kind = one.peek("Type").and_then(|kind| kind.scalar());
        match kind {
            Some("NONE") => {}
            Some("LOWERCASE") if *part == KeyPart::Host => {}
            Some("LOWERCASE") => {
                draft.approximate("LOWERCASE: upper and lower case are told apart here");
            }
            Some("URL_DECODE") if matches!(part, KeyPart::Query(_)) => {}
            Some(kind @ ("URL_DECODE" | "NORMALIZE_PATH" | "NORMALIZE_PATH_WIN")) => {
                draft.approximate(format!("{kind}: a path is taken as the proxy passes it on"));
            }
            other => {
                let other = other.unwrap_or("of no Type");
                return Err(format!(
                    "TextTransformations {other}: rules change no values"
                ));
            }
        }
    }
    Ok(())
}
