//! AWS WAF: the rate-based statements of a web ACL or rule group, as its API or a
//! CloudFormation template has them.
//!
//! It counts what matches, also what it denies, and denies while the count of the
//! last window is over the limit. A request that lacks a part of the key is not
//! counted at all.

mod field;
mod rule;
mod statement;

pub(super) use field::header;

use super::{report::Draft, run::Read};
use crate::rules::at::At;

const ASSUMED: &[&str] = &[
    "AWS WAF counts about every ten seconds and lets some more through until then; here the \
     limit holds at once.",
    "Other rules of the web ACL do not end before a rate is counted: what they allow or block \
     is counted here, too.",
    "Paths are compared as the proxy passes them on.",
    "A header that comes more than once is taken by its first value.",
];

/// What a web ACL may be wrapped in.
const WRAPPERS: &[&str] = &["WebACL", "RuleGroup", "Properties"];

pub(super) fn read(documents: &[At<'_>]) -> Option<Read> {
    let mut found = Read {
        domain: "imported".into(),
        drafts: Vec::new(),
        assumed: ASSUMED.iter().map(|&text| text.to_owned()).collect(),
    };
    for document in documents {
        open(document, &mut found)?;
    }
    Some(found)
}

fn open(at: &At<'_>, found: &mut Read) -> Option<()> {
    if at.node.is_list() {
        return rules(at, &mut found.drafts);
    }
    if let Some(resources) = at.peek("Resources") {
        for entry in resources.entries("a mapping of resources")? {
            let resource = resources.entry(entry);
            let kind = resource.peek("Type").and_then(|kind| kind.scalar());
            if kind.is_some_and(|kind| kind.starts_with("AWS::WAFv2::")) {
                open(&resource, found)?;
            }
        }
        return Some(());
    }
    if let Some(inner) = WRAPPERS.iter().find_map(|name| at.peek(name)) {
        return open(&inner, found);
    }
    if let Some(list) = at.peek("Rules") {
        if let Some(name) = at.peek("Name").and_then(|name| name.scalar()) {
            name.clone_into(&mut found.domain);
        }
        return rules(&list, &mut found.drafts);
    }
    match at.peek("Statement") {
        Some(_) => {
            found.drafts.push(rule::read(at)?);
            Some(())
        }
        None => at.expected("a web ACL or rule group with its Rules, a list of rules, or a rule"),
    }
}

fn rules(at: &At<'_>, drafts: &mut Vec<Draft>) -> Option<()> {
    if !at.node.is_list() {
        return at.expected("a list of rules");
    }
    for one in at.items("a list of rules")? {
        drafts.push(rule::read(&one)?);
    }
    Some(())
}
