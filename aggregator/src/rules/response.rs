//! What a denied client is answered, read from a rule's `response`.

use limiter::rule::response::{self, BODY_LEN_MAX, Body, Response};

use super::{
    at::{At, quoted},
    numbers,
    tree::Entry,
};

pub(super) const FIELDS: &[&str] = &["status", "body", "content_type", "headers"];

/// What a body is unless the rule says otherwise.
const CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// Reads a `response`.
pub(super) fn read(at: &At<'_>) -> Option<Response> {
    let fields = at.fields(FIELDS)?;
    let status = fields.or("status", response::STATUS_DEFAULT, status);
    let content_type = fields.get("content_type");
    let body = match fields.get("body") {
        Some(body) => Some(text(&body)?),
        None => None,
    };
    if let (Some(at), None) = (&content_type, &body) {
        return at.refuse("there is no body that it could be the type of");
    }
    let content_type = match content_type {
        Some(at) => at.text("a media type, as in text/html")?,
        None => CONTENT_TYPE,
    };
    let response = Response {
        status,
        body: body.map(|text| Body {
            content_type: content_type.to_owned(),
            text,
        }),
        headers: fields.or("headers", Vec::new(), headers),
    };
    at_valid(at, response)
}

fn at_valid(at: &At<'_>, response: Response) -> Option<Response> {
    match response.validate() {
        Ok(()) => Some(response),
        Err(error) => at.refuse(error),
    }
}

fn status(at: &At<'_>) -> Option<u16> {
    let what = "a status from 400 to 599";
    let number = numbers::digits(at.bare(what)?);
    let status = number.and_then(|number| u16::try_from(number).ok());
    let status = status.filter(|status| (400..=599).contains(status));
    status.or_else(|| at.expected(what))
}

fn text(at: &At<'_>) -> Option<String> {
    let text = at.text("a text")?;
    match text.len() {
        ..=BODY_LEN_MAX => Some(text.to_owned()),
        len => at.refuse(format_args!(
            "expected at most {BODY_LEN_MAX} bytes, got {len}"
        )),
    }
}

fn headers(at: &At<'_>) -> Option<Vec<(String, String)>> {
    let entries = at.entries("a mapping of header names to values")?;
    let headers: Vec<_> = entries.iter().map(|entry| header(at, entry)).collect();
    headers.into_iter().collect()
}

fn header(at: &At<'_>, entry: &Entry) -> Option<(String, String)> {
    let value_at = at.entry(entry);
    let value = value_at.text("a value")?;
    let name = entry.key.to_ascii_lowercase();
    match response::header(&name, value) {
        Ok(()) => Some((name, value.to_owned())),
        Err(error) => {
            let message = format!("{error}, got {}: {}", quoted(&entry.key), quoted(value));
            at.notes.add(entry.place, &value_at.path, message);
            None
        }
    }
}

/// An answer in words: for reports.
pub(super) fn words(response: &Response) -> String {
    let mut words = response.status.to_string();
    if let Some(body) = &response.body {
        words += &format!(", {}: {}", body.content_type, quoted(&body.text));
    }
    for (name, value) in &response.headers {
        words += &format!(", {name}: {value}");
    }
    words
}
