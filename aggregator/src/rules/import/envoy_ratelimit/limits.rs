//! A rule for each limit in the tree.

use limiter::{
    quota::Algorithm,
    rule::{Action, KeyPart},
};

use super::tree::Node;
use crate::rules::{
    import::{
        build::{self, make, quota},
        entries::{Entries, Meaning},
        expr::Expr,
        report::Draft,
        subject::{Op, test},
    },
    key::Written,
};

/// The way from the root to a descriptor.
#[derive(Clone, Default)]
struct Way {
    name: Vec<String>,
    when: Vec<Expr>,
    key: Vec<KeyPart>,
    /// Of the entries on the way: what is not known for sure, and why nothing can
    /// be made of it.
    doubts: Vec<String>,
    lost: Option<String>,
}

/// A limit, found.
struct Found<'a> {
    node: &'a Node,
    way: Way,
}

/// A draft for each limit, and for each descriptor that has something to report.
pub(super) fn all(nodes: &[Node], entries: &Entries) -> Vec<Draft> {
    let mut found = Vec::new();
    walk(nodes, &Way::default(), entries, &mut found);
    let drafts = found.iter().map(|one| draft(one, &found));
    drafts.collect()
}

fn walk<'a>(nodes: &'a [Node], way: &Way, entries: &Entries, found: &mut Vec<Found<'a>>) {
    for node in nodes {
        let way = step(node, nodes, way.clone(), entries);
        walk_on(node, way, entries, found);
    }
}

fn walk_on<'a>(node: &'a Node, way: Way, entries: &Entries, found: &mut Vec<Found<'a>>) {
    if node.limit.is_some() || !node.draft.notes.is_empty() {
        let way = way.clone();
        found.push(Found { node, way });
    }
    walk(&node.children, &way, entries, found);
}

/// Goes one entry on.
fn step(node: &Node, siblings: &[Node], mut way: Way, entries: &Entries) -> Way {
    way.name.push(match &node.value {
        Some(value) => format!("{}={value}", node.key),
        None => node.key.clone(),
    });
    let key = &node.key;
    let part = match entries.meaning(key) {
        Meaning::Is(part) => part,
        Meaning::Perhaps(part) => {
            let doubt = format!(
                "{key} is taken to be {}; say where it comes from with --map {key}=...",
                Written(&part)
            );
            way.doubts.push(doubt);
            part
        }
        Meaning::Fixed => {
            match &node.value {
                Some(_) => way.doubts.push(format!(
                    "which routes send {key} stands elsewhere; the rule applies to all requests"
                )),
                None => lose(
                    &mut way,
                    format!("{key} without a value: a count for each route"),
                ),
            }
            return way;
        }
        Meaning::Nothing(why) => {
            lose(
                &mut way,
                format!("{key}: {why}; --map {key}=... can say it"),
            );
            return way;
        }
    };
    match branch(node, siblings, &part) {
        Ok(when) => way.when.push(when),
        Err(why) => lose(&mut way, format!("{key}: {why}")),
    }
    if node
        .value
        .as_deref()
        .is_none_or(|value| value.contains('*') && !node.share)
    {
        way.key.push(part);
    }
    way
}

fn lose(way: &mut Way, why: String) {
    way.lost.get_or_insert(why);
}

/// When an entry takes this branch, and none of its siblings.
fn branch(node: &Node, siblings: &[Node], part: &KeyPart) -> Result<Expr, String> {
    let same_key = || siblings.iter().filter(|other| other.key == node.key);
    let values = || same_key().filter_map(|other| other.value.as_deref());
    let exact: Vec<String> = values()
        .filter(|value| !value.contains('*'))
        .map(str::to_owned)
        .collect();
    let globs: Vec<&str> = values().filter(|value| value.contains('*')).collect();
    let own = node.value.as_deref();
    let (takes, before) = match own {
        Some(glob) if glob.contains('*') => {
            let before = globs
                .iter()
                .take_while(|other| **other != glob)
                .copied()
                .collect();
            (Op::Like(glob.to_owned()), before)
        }
        Some(value) => return test(part, Op::OneOf(vec![value.to_owned()])),
        None => (Op::Present, globs),
    };
    let mut others = Vec::new();
    if !exact.is_empty() {
        others.push(test(part, Op::OneOf(exact))?);
    }
    for glob in before {
        others.push(test(part, Op::Like(glob.to_owned()))?);
    }
    // That it is there is what counting per it needs anyway.
    let takes = match takes {
        Op::Present => Expr::True,
        takes => test(part, takes)?,
    };
    Ok(match others.is_empty() {
        true => takes,
        false => Expr::All(vec![takes, Expr::Any(others).not()]),
    })
}

/// When a limit applies, its counts' parts included.
fn applies(found: &Found<'_>) -> Result<Expr, String> {
    let mut parts = found.way.when.clone();
    for part in &found.way.key {
        parts.push(test(part, Op::Present)?);
    }
    Ok(Expr::All(parts))
}

fn draft(found: &Found<'_>, all: &[Found<'_>]) -> Draft {
    let (node, way) = (found.node, &found.way);
    let mut draft = node.draft.clone();
    draft.name = way.name.join("/");
    let Some(limit) = &node.limit else {
        return draft;
    };
    if let Some(name) = &limit.name {
        draft.say(format!("its name is {name}"));
    }
    let Some((requests, unit)) = limit.per else {
        draft.say("unlimited: the less particular ones leave it out");
        unlimited(&mut draft, way);
        return draft;
    };
    if let Some(why) = &way.lost {
        draft.refuse(why.clone());
        return draft;
    }
    way.doubts
        .iter()
        .for_each(|doubt| draft.approximate(doubt.clone()));
    if node.quota {
        draft.approximate(
            "quota_mode denies only when all such limits of a request are spent; this rule denies alone",
        );
    }
    let mut when = way.when.clone();
    for other in all.iter().filter(|other| replaces(other, found)) {
        let applies = match &other.way.lost {
            Some(why) => Err(why.clone()),
            None => applies(other),
        };
        match applies {
            Ok(applies) => when.push(applies.not()),
            Err(why) => draft.approximate(format!(
                "{} replaces it in the source, and not here: {why}",
                other.way.name.join("/")
            )),
        }
    }
    let quota = quota(&mut draft, requests, unit, Algorithm::FixedWindow);
    make(
        &mut draft,
        quota,
        way.key.clone(),
        Expr::All(when),
        |rule| {
            rule.count_denied = true;
            if node.shadow {
                rule.action = Action::Shadow;
            }
        },
    );
    draft
}

/// The rule of a descriptor that is not limited, so that it is seen to be so. If nothing
/// can be made of it that is as good: it would apply to nothing.
fn unlimited(draft: &mut Draft, way: &Way) {
    if way.lost.is_some() {
        return;
    }
    let when = Expr::All(way.when.clone());
    make(draft, build::unlimited(), way.key.clone(), when, |rule| {
        rule.unlimited = true
    });
}

fn replaces(other: &Found<'_>, replaced: &Found<'_>) -> bool {
    let name = replaced
        .node
        .limit
        .as_ref()
        .and_then(|limit| limit.name.as_ref());
    let list = other.node.limit.as_ref().map(|limit| &limit.replaces);
    name.zip(list)
        .is_some_and(|(name, list)| list.contains(name))
}
