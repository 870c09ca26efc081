//! What a source asks of a request, and the same as a rule says it.

use limiter::rule::{Condition, Expect};

/// And, or, not.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// Always holds.
    True,
    Is(Condition),
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Not(Box<Expr>),
}

impl Expr {
    pub(super) fn not(self) -> Self {
        match self {
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// The conditions that hold together if and only if this does.
    ///
    /// Says why not if it never holds: such a rule has nothing to do.
    pub(super) fn conditions(self) -> Result<Vec<Condition>, String> {
        match self {
            Self::True => Ok(Vec::new()),
            Self::Is(condition) => Ok(vec![condition]),
            Self::All(parts) => {
                let parts: Result<Vec<_>, _> = parts.into_iter().map(Self::conditions).collect();
                Ok(neither_nor(parts?.into_iter().flatten()))
            }
            Self::Any(parts) => any(parts),
            Self::Not(inner) => not(*inner),
        }
    }
}

/// What must not hold is listed once.
fn neither_nor(conditions: impl Iterator<Item = Condition>) -> Vec<Condition> {
    let mut all: Vec<Condition> = Vec::new();
    let mut never: Vec<Vec<Condition>> = Vec::new();
    for condition in conditions {
        match condition {
            Condition::None(more) => {
                extend(&mut never, &more);
            }
            condition if all.contains(&condition) => {}
            condition => all.push(condition),
        }
    }
    if !never.is_empty() {
        all.push(Condition::None(never));
    }
    all
}

fn any(parts: Vec<Expr>) -> Result<Vec<Condition>, String> {
    let mut lists: Vec<Vec<Condition>> = Vec::new();
    for part in flat(parts) {
        let list = part.conditions()?;
        if list.is_empty() {
            return Ok(list);
        }
        let merged = lists.iter_mut().any(|earlier| merge(earlier, &list));
        if !merged {
            lists.push(list);
        }
    }
    Ok(match lists.len() {
        1 => lists.into_iter().flatten().collect(),
        _ => vec![Condition::Any(lists)],
    })
}

fn not(inner: Expr) -> Result<Vec<Condition>, String> {
    let parts = match inner {
        Expr::Any(parts) => flat(parts),
        other => vec![other],
    };
    let mut lists: Vec<Vec<Condition>> = Vec::new();
    for part in parts {
        let list = part.conditions()?;
        if list.is_empty() {
            return Err("it never applies".into());
        }
        let merged = lists.iter_mut().any(|earlier| merge(earlier, &list));
        if !merged {
            lists.push(list);
        }
    }
    Ok(match &mut *lists {
        [list] => match opposite(list) {
            Some(opposite) => vec![opposite],
            None => vec![Condition::None(lists)],
        },
        _ => vec![Condition::None(lists)],
    })
}

/// Alternatives of alternatives are alternatives.
fn flat(parts: Vec<Expr>) -> Vec<Expr> {
    let open = |part| match part {
        Expr::Any(parts) => flat(parts),
        other => vec![other],
    };
    parts.into_iter().flat_map(open).collect()
}

/// What holds exactly when this does not, where one condition can say that.
fn opposite(list: &[Condition]) -> Option<Condition> {
    let flip = |expect: &Expect| match expect {
        Expect::Present => Some(Expect::Absent),
        Expect::Absent => Some(Expect::Present),
        Expect::OneOf(_) | Expect::In(_) | Expect::Like(_) => None,
    };
    let name = String::clone;
    Some(match list {
        [
            Condition::Header {
                name: header,
                expect,
            },
        ] => {
            let (name, expect) = (name(header), flip(expect)?);
            Condition::Header { name, expect }
        }
        [
            Condition::Cookie {
                name: cookie,
                expect,
            },
        ] => {
            let (name, expect) = (name(cookie), flip(expect)?);
            Condition::Cookie { name, expect }
        }
        [
            Condition::Query {
                name: query,
                expect,
            },
        ] => {
            let (name, expect) = (name(query), flip(expect)?);
            Condition::Query { name, expect }
        }
        [Condition::None(lists)] => match &**lists {
            [one] if one.len() == 1 => one.first()?.clone(),
            _ => return None,
        },
        _ => return None,
    })
}

/// Takes one alternative into another, if one condition can say both.
fn merge(into: &mut [Condition], list: &[Condition]) -> bool {
    match (into, list) {
        ([Condition::Host(all)], [Condition::Host(more)])
        | ([Condition::Path(all)], [Condition::Path(more)])
        | ([Condition::Method(all)], [Condition::Method(more)]) => extend(all, more),
        ([Condition::Address(all)], [Condition::Address(more)]) => extend(all, more),
        (
            [Condition::Header { name, expect }],
            [
                Condition::Header {
                    name: other,
                    expect: more,
                },
            ],
        )
        | (
            [Condition::Cookie { name, expect }],
            [
                Condition::Cookie {
                    name: other,
                    expect: more,
                },
            ],
        )
        | (
            [Condition::Query { name, expect }],
            [
                Condition::Query {
                    name: other,
                    expect: more,
                },
            ],
        ) if name == other => match (expect, more) {
            (Expect::OneOf(all), Expect::OneOf(more)) | (Expect::Like(all), Expect::Like(more)) => {
                extend(all, more)
            }
            _ => false,
        },
        _ => false,
    }
}

fn extend<T: Clone + PartialEq>(all: &mut Vec<T>, more: &[T]) -> bool {
    for one in more {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
    true
}
