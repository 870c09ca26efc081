//! What is expected of headers, cookies and query parameters.

use limiter::rule::{
    Condition, Expect,
    text::{self, TextError},
};

use super::{
    at::{At, quoted},
    conditions::list,
    lists::Kind,
    tree::Entry,
};

const WHAT: &str =
    "present, absent, a value, a list of values, { like: \"a*\" } or { in: list.txt }";

/// Reads a mapping of header names to what is expected of them.
pub(super) fn headers(at: &At<'_>) -> Option<Vec<Condition>> {
    let make = |name: String, expect| Condition::Header { name, expect };
    let lower = |key: &str| key.to_ascii_lowercase();
    each(at, "header", lower, text::header_name, make)
}

/// Reads a mapping of cookies to what is expected of them.
pub(super) fn cookies(at: &At<'_>) -> Option<Vec<Condition>> {
    let make = |name, expect| Condition::Cookie { name, expect };
    each(at, "cookie", str::to_owned, text::token, make)
}

/// Reads a mapping of query parameters to what is expected of them.
pub(super) fn query(at: &At<'_>) -> Option<Vec<Condition>> {
    let make = |name, expect| Condition::Query { name, expect };
    each(at, "query parameter", str::to_owned, text::value, make)
}

pub(super) fn each(
    at: &At<'_>,
    what: &str,
    name: fn(&str) -> String,
    check: fn(&str) -> Result<(), TextError>,
    make: fn(String, Expect) -> Condition,
) -> Option<Vec<Condition>> {
    let entries = at.entries(&format!("a mapping of {what} names to {WHAT}"))?;
    let read = |entry: &Entry| {
        let name = name(&entry.key);
        if let Err(error) = check(&name) {
            let message = format!("{error}, got {}", quoted(&entry.key));
            at.notes.add(entry.place, &at.entry(entry).path, message);
            return None;
        }
        Some(make(name, expect(&at.entry(entry))?))
    };
    let read: Vec<_> = entries.iter().map(read).collect();
    read.into_iter().collect()
}

/// What is expected of a value. One that must say `present` is written in
/// brackets: `[present]`.
fn expect(at: &At<'_>) -> Option<Expect> {
    match at.scalar() {
        Some("present") => return Some(Expect::Present),
        Some("absent") => return Some(Expect::Absent),
        _ => {}
    }
    if at.node.is_map() {
        let fields = at.fields(&["like", "in"])?;
        return match (fields.get("like"), fields.get("in")) {
            (Some(like), None) => values(&like).map(Expect::Like),
            (None, Some(list)) => list.list(Kind::Values).map(Expect::In),
            _ => at.expected(WHAT),
        };
    }
    values(at).map(Expect::OneOf)
}

fn values(at: &At<'_>) -> Option<Vec<String>> {
    list(at, WHAT, |at, value| match value {
        "" => Some(String::new()),
        value => at.checked(text::value(value)).map(|()| value.into()),
    })
}
