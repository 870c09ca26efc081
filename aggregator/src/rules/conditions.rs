//! What a rule applies to, read from its `match`.

use std::fmt;

use limiter::{
    address::Cidr,
    rule::{Condition, Expect, HostPattern, PathPattern, text},
};

use super::{
    at::{At, quoted},
    later,
    tree::Entry,
};

const FIELDS: &[&str] = &["hosts", "paths", "methods", "headers", "cidr"];

/// Methods that are commonly written in lower case by mistake.
const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// Reads a `match`. Everything in it must hold.
pub(super) fn read(at: &At<'_>) -> Option<Vec<Condition>> {
    let fields = at.fields(FIELDS, later::MATCH)?;
    let mut conditions = Vec::new();
    let mut add = |condition: Option<Condition>| conditions.extend(condition);
    add(fields.get("hosts").and_then(|at| hosts(&at)));
    add(fields.get("paths").and_then(|at| paths(&at)));
    add(fields.get("methods").and_then(|at| methods(&at)));
    let headers = fields.get("headers").and_then(|at| headers(&at));
    headers
        .into_iter()
        .flatten()
        .for_each(|header| add(Some(header)));
    add(fields.get("cidr").and_then(|at| addresses(&at)));
    Some(conditions)
}

fn hosts(at: &At<'_>) -> Option<Condition> {
    let what = "a host, or `*.` and a host";
    let check = |at: &At<'_>, host: &str| at.checked(HostPattern::new(host)).map(|_| host.into());
    Some(Condition::Host(list(at, what, check)?))
}

fn paths(at: &At<'_>) -> Option<Condition> {
    let what = "a path pattern, as in /v1/**";
    let check = |at: &At<'_>, path: &str| at.checked(PathPattern::new(path)).map(|_| path.into());
    Some(Condition::Path(list(at, what, check)?))
}

fn methods(at: &At<'_>) -> Option<Condition> {
    Some(Condition::Method(list(at, "a method, as in GET", method)?))
}

fn method(at: &At<'_>, method: &str) -> Option<String> {
    let upper = method.to_ascii_uppercase();
    if upper != method && METHODS.contains(&&*upper) {
        return at.expected(format_args!("{upper}: methods have a case"));
    }
    at.checked(text::token(method))?;
    Some(method.into())
}

fn addresses(at: &At<'_>) -> Option<Condition> {
    Some(Condition::Address(blocks(at)?))
}

/// Reads a list of address blocks.
pub(super) fn blocks(at: &At<'_>) -> Option<Vec<Cidr>> {
    let what = "a block of addresses, as in 10.0.0.0/8";
    list(at, what, |at, block| at.checked(block.parse()))
}

fn headers(at: &At<'_>) -> Option<Vec<Condition>> {
    let entries = at.entries("a mapping of header names to present, absent, a value or a list")?;
    let header = |entry| header(at, entry);
    let headers: Vec<_> = entries.iter().map(header).collect();
    headers.into_iter().collect()
}

fn header(at: &At<'_>, entry: &Entry) -> Option<Condition> {
    let name = entry.key.to_ascii_lowercase();
    if let Err(error) = text::header_name(&name) {
        let path = at.entry(entry).path;
        let message = format!("{error}, got {}", quoted(&entry.key));
        at.notes.add(entry.place, &path, message);
        return None;
    }
    let expect = expect(&at.entry(entry))?;
    Some(Condition::Header { name, expect })
}

/// What is expected of a header. One that must say `present` is written in
/// brackets: `[present]`.
fn expect(at: &At<'_>) -> Option<Expect> {
    match at.scalar() {
        Some("present") => return Some(Expect::Present),
        Some("absent") => return Some(Expect::Absent),
        _ => {}
    }
    let what = "present, absent, a value or a list of values";
    let value = |at: &At<'_>, value: &str| match value {
        "" => Some(String::new()),
        value => at.checked(text::value(value)).map(|()| value.into()),
    };
    list(at, what, value).map(Expect::OneOf)
}

/// Reads a list, or one item, noting every item that is wrong.
fn list<T>(at: &At<'_>, what: &str, read: impl Fn(&At<'_>, &str) -> Option<T>) -> Option<Vec<T>> {
    let items = at.items(what)?;
    if items.is_empty() {
        return at.refuse("an empty list matches nothing; leave the field out to match all");
    }
    let item = |at: &At<'_>| at.text(what).and_then(|text| read(at, text));
    let items: Vec<_> = items.iter().map(item).collect();
    items.into_iter().collect()
}

/// A condition as a rule file has it, in short.
pub(super) struct Written<'a>(pub(super) &'a Condition);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Condition::Host(hosts) => write!(f, "hosts {}", hosts.join(" ")),
            Condition::Path(paths) => write!(f, "paths {}", paths.join(" ")),
            Condition::Method(methods) => write!(f, "methods {}", methods.join(" ")),
            Condition::Header { name, expect } => match expect {
                Expect::Present => write!(f, "header {name} present"),
                Expect::Absent => write!(f, "header {name} absent"),
                Expect::OneOf(values) => write!(f, "header {name} = {}", values.join(" | ")),
            },
            Condition::Address(blocks) => {
                f.write_str("cidr")?;
                blocks.iter().try_for_each(|block| write!(f, " {block}"))
            }
            Condition::Unsupported => f.write_str("nothing (not understood)"),
        }
    }
}
