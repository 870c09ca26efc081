//! What a client selector asks of a request, and what it counts per.

use limiter::rule::KeyPart;

use crate::rules::{
    at::At,
    import::{
        aws_waf::header,
        build::WHOLE_ADDRESS,
        expr::Expr,
        lexer::glob_of_regex,
        subject::{Op, test},
    },
};

/// What a name is the name of.
type Named = fn(String) -> KeyPart;

/// The lists of things that have a name and a value.
pub(super) const NAMED: &[(&str, Named)] = &[("headers", header), ("queryParams", KeyPart::Query)];

const KNOWN: &[&str] = &["headers", "queryParams", "methods", "path", "sourceCIDR"];

/// Reads a selector: everything in it must hold.
pub(super) fn read(at: &At<'_>) -> Result<(Expr, Vec<KeyPart>), String> {
    let (mut parts, mut key) = (Vec::new(), Vec::new());
    let entries = at.entries("a selector").unwrap_or_default();
    if let Some(entry) = entries.iter().find(|entry| !KNOWN.contains(&&*entry.key)) {
        return Err(format!("{} is not understood", entry.key));
    }
    for (name, part) in NAMED {
        for one in items(at, name) {
            let (when, distinct) = named(&one, *part)?;
            parts.push(when);
            key.extend(distinct);
        }
    }
    if let Some(methods) = methods(at)? {
        parts.push(methods);
    }
    if let Some(path) = at.peek("path") {
        parts.push(self::path(&path)?);
    }
    if let Some(cidr) = at.peek("sourceCIDR") {
        let value = text(&cidr, "value").ok_or("sourceCIDR has no value")?;
        let inside = test(&WHOLE_ADDRESS, Op::OneOf(vec![value]))?;
        parts.push(if inverted(&cidr) {
            inside.not()
        } else {
            inside
        });
        if text(&cidr, "type").as_deref() == Some("Distinct") {
            key.push(WHOLE_ADDRESS);
        }
    }
    Ok((Expr::All(parts), key))
}

/// A header or query parameter: what it must be, and whether it is counted per.
pub(super) fn named(
    at: &At<'_>,
    part: fn(String) -> KeyPart,
) -> Result<(Expr, Option<KeyPart>), String> {
    let part = part(text(at, "name").ok_or("a name is missing")?);
    let value = || text(at, "value").ok_or("a value is missing");
    let op = match text(at, "type").as_deref() {
        Some("Exact") | None => Op::OneOf(vec![value()?]),
        Some("Distinct") => return Ok((Expr::True, Some(part))),
        Some("RegularExpression") => Op::Like(glob(&value()?)?),
        Some(other) => return Err(format!("type {other} is not understood")),
    };
    let holds = test(&part, op)?;
    // What is not there is not something else.
    Ok(match inverted(at) {
        true => (
            Expr::All(vec![test(&part, Op::Present)?, holds.not()]),
            None,
        ),
        false => (holds, None),
    })
}

/// A path: its type, its value, and whether it is meant or all others.
pub(super) fn path(at: &At<'_>) -> Result<Expr, String> {
    let value = text(at, "value").unwrap_or_else(|| "/".into());
    let holds = match text(at, "type").as_deref() {
        Some("Exact") => test(&KeyPart::Path, Op::OneOf(vec![value]))?,
        Some("PathPrefix") | None => prefix(&value)?,
        Some("RegularExpression") => test(&KeyPart::Path, Op::Like(glob(&value)?))?,
        Some(other) => return Err(format!("type {other} is not understood")),
    };
    Ok(if inverted(at) { holds.not() } else { holds })
}

/// A prefix of whole segments.
fn prefix(value: &str) -> Result<Expr, String> {
    let value = value.trim_end_matches('/');
    if value.is_empty() {
        return Ok(Expr::True);
    }
    let whole = test(&KeyPart::Path, Op::OneOf(vec![value.to_owned()]))?;
    let below = test(&KeyPart::Path, Op::Prefix(format!("{value}/")))?;
    Ok(Expr::Any(vec![whole, below]))
}

fn methods(at: &At<'_>) -> Result<Option<Expr>, String> {
    let mut all = Vec::new();
    for one in items(at, "methods") {
        let value = text(&one, "value").ok_or("a method has no value")?;
        let holds = test(&KeyPart::Method, Op::OneOf(vec![value]))?;
        all.push(if inverted(&one) { holds.not() } else { holds });
    }
    Ok((!all.is_empty()).then_some(Expr::Any(all)))
}

fn glob(regex: &str) -> Result<String, String> {
    glob_of_regex(regex, true).ok_or_else(|| "rules know no regular expressions".into())
}

fn items<'a>(at: &At<'a>, name: &str) -> Vec<At<'a>> {
    at.peek(name)
        .and_then(|list| list.items("a list"))
        .unwrap_or_default()
}

fn text(at: &At<'_>, name: &str) -> Option<String> {
    at.peek(name)?.scalar().map(str::to_owned)
}

fn inverted(at: &At<'_>) -> bool {
    at.peek("invert").and_then(|invert| invert.scalar()) == Some("true")
}
