//! What a source compares, and how it compares it, as a condition.
//!
//! What can be counted per can be compared, so the part of a key is the name of
//! both.

use limiter::{
    address::Cidr,
    rule::{Condition, Expect, HostPattern, KeyPart, PathPattern, text},
};

use super::expr::Expr;

/// The most `*` within a path that are taken apart: each doubles the patterns.
const INNER_STARS_MAX: usize = 3;

/// How a value is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    /// It is there.
    Present,
    /// It is one of these.
    OneOf(Vec<String>),
    /// It begins with this, ends with this, or holds this.
    Prefix(String),
    Suffix(String),
    Contains(String),
    /// `*` stands for any bytes.
    Like(String),
}

impl Op {
    /// As a glob; says why not if it is none.
    fn glob(&self) -> Result<String, String> {
        let literal = |text: &str| match text.contains('*') {
            false => Ok(text.to_owned()),
            true => Err(format!(
                "{text:?} holds a `*`, which a rule takes for any text"
            )),
        };
        Ok(match self {
            Self::Prefix(text) => literal(text)? + "*",
            Self::Suffix(text) => format!("*{}", literal(text)?),
            Self::Contains(text) => format!("*{}*", literal(text)?),
            Self::Like(glob) => glob.clone(),
            Self::Present | Self::OneOf(_) => "*".into(),
        })
    }
}

/// Whether the subject is so, as an expression; else why a rule cannot say it.
pub(super) fn test(subject: &KeyPart, op: Op) -> Result<Expr, String> {
    let condition = match subject {
        KeyPart::Header(name) => {
            let (name, expect) = (name.clone(), expect(op)?);
            Condition::Header { name, expect }
        }
        KeyPart::Cookie(name) => {
            let (name, expect) = (name.clone(), expect(op)?);
            Condition::Cookie { name, expect }
        }
        KeyPart::Query(name) => {
            let (name, expect) = (name.clone(), expect(op)?);
            Condition::Query { name, expect }
        }
        KeyPart::Attribute(attribute) => {
            let (attribute, expect) = (attribute.clone(), expect(op)?);
            Condition::Attribute { attribute, expect }
        }
        _ if op == Op::Present => return Ok(Expr::True),
        KeyPart::Path => Condition::Path(paths(&op)?),
        KeyPart::Host => Condition::Host(hosts(&op)?),
        KeyPart::Method => Condition::Method(methods(&op)?),
        KeyPart::Address { .. } => Condition::Address(blocks(&op)?),
        KeyPart::PathSegment(_) => return Err("one segment of a path is not compared".into()),
        KeyPart::Constant(_) => return Ok(Expr::True),
        KeyPart::Optional(part) => return test(part, op),
    };
    Ok(Expr::Is(condition))
}

fn expect(op: Op) -> Result<Expect, String> {
    Ok(match op {
        Op::Present => Expect::Present,
        Op::OneOf(values) => Expect::OneOf(values),
        other => Expect::Like(vec![other.glob()?]),
    })
}

fn hosts(op: &Op) -> Result<Vec<String>, String> {
    let whole = |host: &String| host.to_ascii_lowercase();
    let hosts = match op {
        Op::OneOf(hosts) => hosts.iter().map(whole).collect(),
        other => match other.glob()?.strip_prefix("*.") {
            Some(end) if !end.contains('*') => vec![format!("*.{}", end.to_ascii_lowercase())],
            _ => return Err("a host is compared whole, or by its last labels".into()),
        },
    };
    each(hosts, |host| HostPattern::new(host).map(drop))
}

fn methods(op: &Op) -> Result<Vec<String>, String> {
    match op {
        Op::OneOf(methods) => each(methods.clone(), text::token),
        _ => Err("a method is compared whole".into()),
    }
}

fn blocks(op: &Op) -> Result<Vec<Cidr>, String> {
    let Op::OneOf(texts) = op else {
        return Err("an address is compared whole, or by its block".into());
    };
    let block = |text: &String| {
        text.parse()
            .map_err(|error| format!("{error}, got {text:?}"))
    };
    texts.iter().map(block).collect()
}

fn paths(op: &Op) -> Result<Vec<String>, String> {
    let patterns = match op {
        Op::OneOf(paths) => match paths.iter().find(|path| path.contains('*')) {
            Some(path) => {
                return Err(format!(
                    "{path:?} holds a `*`, which a rule takes for any text"
                ));
            }
            None => paths.clone(),
        },
        other => path_patterns(&other.glob()?)?,
    };
    each(patterns, |path| PathPattern::new(path).map(drop))
}

/// The patterns that fit the paths that look like a glob whose `*` may stand
/// for slashes, too.
fn path_patterns(glob: &str) -> Result<Vec<String>, String> {
    let mut glob = glob.to_owned();
    while glob.contains("**") {
        glob = glob.replace("**", "*");
    }
    let pieces: Vec<&str> = glob.split('*').collect();
    let (Some((first, rest)), true) = (pieces.split_first(), pieces.len() > 1) else {
        return Ok(vec![glob.clone()]);
    };
    if rest.len() > INNER_STARS_MAX + 1 {
        return Err(format!("more than {INNER_STARS_MAX} `*` in one path"));
    }
    // Every path begins with a slash; what follows may be of any depth.
    let mut patterns = vec![match *first {
        "" => String::new(),
        first => first.to_owned(),
    }];
    for (place, piece) in rest.iter().enumerate() {
        let leading = place == 0 && first.is_empty();
        let last = place + 1 == rest.len();
        patterns = patterns
            .iter()
            .flat_map(|so_far| star(so_far, piece, leading, last))
            .collect();
    }
    Ok(patterns)
}

/// The ways to go on after a `*` with a piece of text.
fn star(so_far: &str, piece: &str, leading: bool, last: bool) -> Vec<String> {
    let deep = match piece.strip_prefix('/') {
        Some(below) if leading => return vec![format!("/**/{below}")],
        _ if leading && piece.is_empty() => return vec!["/**".into()],
        _ if leading => return vec![format!("/**/*{piece}")],
        _ if last && piece.is_empty() => return vec![format!("{so_far}*/**")],
        Some(below) => format!("{so_far}*/**/{below}"),
        None => format!("{so_far}*/**/*{piece}"),
    };
    match piece.starts_with('/') {
        true => vec![deep],
        false => vec![format!("{so_far}*{piece}"), deep],
    }
}

fn each(
    values: Vec<String>,
    check: impl Fn(&str) -> Result<(), text::TextError>,
) -> Result<Vec<String>, String> {
    for value in &values {
        check(value).map_err(|error| format!("{error}, got {value:?}"))?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn means(glob: &[u8], text: &[u8]) -> bool {
        match glob.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|taken| means(rest, &text[taken..])),
            Some((byte, rest)) => text.first() == Some(byte) && means(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn a_glob_over_slashes_fits_the_same_paths_as_its_patterns(
            glob in "(/|\\*)[a/]{0,3}(\\*[a/]{0,3}){0,3}",
            path in "/[a/]{0,8}",
        ) {
            let patterns = path_patterns(&glob).unwrap();
            let fits = patterns.iter().any(|one| PathPattern::new(one).unwrap().fits(path.as_bytes()));
            prop_assert_eq!(fits, means(glob.as_bytes(), path.as_bytes()), "{:?}", patterns);
        }
    }
}
