//! What a rule applies to, read from its `match`.

use std::fmt;

use limiter::{
    address::Cidr,
    list::List,
    rule::{Condition, Expect, HostPattern, KeyPart, PathPattern, RuleError, text},
};

use super::{at::At, attributes, expect, lists::Kind};

pub(super) const FIELDS: &[&str] = &[
    "hosts", "paths", "methods", "headers", "header", "cidr", "cookies", "query", "country", "asn",
    "ja4", "jwt", "key_in", "any", "not", "all",
];

/// Methods that are commonly written in lower case by mistake.
const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// Reads a `match`. Everything in it must hold.
pub(super) fn read(at: &At<'_>) -> Option<Vec<Condition>> {
    let fields = at.fields(FIELDS)?;
    let get = |name| fields.get(name);
    let mut conditions = Vec::new();
    conditions.extend(get("hosts").and_then(|at| hosts(&at)));
    conditions.extend(get("paths").and_then(|at| paths(&at)));
    conditions.extend(get("methods").and_then(|at| methods(&at)));
    for name in ["headers", "header"] {
        let headers = get(name).and_then(|at| expect::headers(&at));
        conditions.extend(headers.into_iter().flatten());
    }
    conditions.extend(get("cidr").and_then(|at| addresses(&at)));
    conditions.extend(
        get("cookies")
            .and_then(|at| expect::cookies(&at))
            .into_iter()
            .flatten(),
    );
    conditions.extend(
        get("query")
            .and_then(|at| expect::query(&at))
            .into_iter()
            .flatten(),
    );
    conditions.extend(attributes::read(&fields));
    // What kind of list that is only the key says: see `for_key`.
    let keys = get("key_in").and_then(|at| at.list(Kind::Values));
    conditions.extend(keys.map(Condition::KeyIn));
    conditions.extend(
        get("any")
            .and_then(|at| alternatives(&at))
            .map(Condition::Any),
    );
    conditions.extend(
        get("not")
            .and_then(|at| alternatives(&at))
            .map(Condition::None),
    );
    let all = get("all").and_then(|at| alternatives(&at));
    conditions.extend(all.into_iter().flatten().flatten());
    Some(conditions)
}

/// Reads the lists of keys in these conditions for a rule whose key has this part that
/// they are about. What is wrong is noted at this place.
pub(super) fn for_key(
    at: &At<'_>,
    conditions: &[Condition],
    listed: Option<&KeyPart>,
) -> Option<Vec<Condition>> {
    let nested = |lists: &[Vec<Condition>]| -> Option<Vec<Vec<Condition>>> {
        lists.iter().map(|list| for_key(at, list, listed)).collect()
    };
    let one = |condition: &Condition| match condition {
        Condition::KeyIn(list) => match listed {
            Some(part) => at
                .list_named(list.name(), Kind::of(part))
                .map(Condition::KeyIn),
            None => at.refuse(RuleError::NoKeyToList),
        },
        Condition::Any(lists) => nested(lists).map(Condition::Any),
        Condition::None(lists) => nested(lists).map(Condition::None),
        other => Some(other.clone()),
    };
    conditions.iter().map(one).collect()
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
    if at.node.is_map() {
        let list = at.fields(&["in"])?.need("in")?;
        return list.list(Kind::Blocks).map(Condition::AddressIn);
    }
    Some(Condition::Address(blocks(at)?))
}

/// Reads a list of address blocks.
pub(super) fn blocks(at: &At<'_>) -> Option<Vec<Cidr>> {
    let what = "a block of addresses, as in 10.0.0.0/8";
    list(at, what, |at, block| at.checked(block.parse()))
}

fn alternatives(at: &At<'_>) -> Option<Vec<Vec<Condition>>> {
    let what = "a list of matches";
    let one = vec![at.clone()];
    let items = if at.node.is_map() {
        one
    } else {
        at.items(what)?
    };
    if items.is_empty() {
        return at.refuse("an empty list; leave the field out");
    }
    let lists: Vec<_> = items.iter().map(alternative).collect();
    lists.into_iter().collect()
}

/// Reads a match that has to say something.
pub(super) fn alternative(at: &At<'_>) -> Option<Vec<Condition>> {
    match read(at)? {
        // What is not understood has been noted.
        conditions
            if conditions.is_empty() && at.entries("").is_some_and(|all| !all.is_empty()) =>
        {
            None
        }
        conditions if conditions.is_empty() => {
            at.expected("at least one condition: what says nothing always holds")
        }
        conditions => Some(conditions),
    }
}

/// Reads a list, or one item, noting every item that is wrong.
pub(super) fn list<T>(
    at: &At<'_>,
    what: &str,
    read: impl Fn(&At<'_>, &str) -> Option<T>,
) -> Option<Vec<T>> {
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
            Condition::Header { name, expect } => {
                expected(f, &format_args!("header {name}"), expect)
            }
            Condition::Cookie { name, expect } => {
                expected(f, &format_args!("cookie {name}"), expect)
            }
            Condition::Query { name, expect } => expected(f, &format_args!("query {name}"), expect),
            Condition::Attribute { attribute, expect } => expected(f, attribute, expect),
            Condition::Any(lists) => nested(f, "any of", lists),
            Condition::None(lists) => nested(f, "not", lists),
            Condition::Address(blocks) => {
                f.write_str("cidr")?;
                blocks.iter().try_for_each(|block| write!(f, " {block}"))
            }
            Condition::AddressIn(list) => write!(f, "cidr in {}", Listed(list)),
            Condition::KeyIn(list) => write!(f, "key in {}", Listed(list)),
            Condition::Unsupported => f.write_str("nothing (not understood)"),
        }
    }
}

fn expected(f: &mut fmt::Formatter<'_>, what: &dyn fmt::Display, expect: &Expect) -> fmt::Result {
    match expect {
        Expect::Present => write!(f, "{what} present"),
        Expect::Absent => write!(f, "{what} absent"),
        Expect::OneOf(values) => write!(f, "{what} = {}", values.join(" | ")),
        Expect::In(list) => write!(f, "{what} in {}", Listed(list)),
        Expect::Like(globs) => write!(f, "{what} like {}", globs.join(" | ")),
    }
}

/// A list in short.
struct Listed<'a>(&'a List);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} listed)", self.0.name(), self.0.len())
    }
}

fn nested(f: &mut fmt::Formatter<'_>, what: &str, lists: &[Vec<Condition>]) -> fmt::Result {
    let list = |list: &Vec<Condition>| {
        let texts: Vec<_> = list.iter().map(|one| Written(one).to_string()).collect();
        texts.join(" and ")
    };
    let texts: Vec<_> = lists.iter().map(list).collect();
    write!(f, "{what} ({})", texts.join("; "))
}
