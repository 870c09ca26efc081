//! Cloudflare's rate-limiting rules: a ruleset of the phase `http_ratelimit`.
//!
//! A rule counts what its expression matches per value of its characteristics,
//! one that a request lacks included: a missing value is a value of its own, and
//! not the empty one. Over its limit it acts for as long as `mitigation_timeout`
//! says. Counters are a data centre's, which a region of ours stands for.

mod expression;
mod field;
mod rule;

use super::{report::Draft, run::Read};
use crate::rules::at::At;

const ASSUMED: &[&str] = &[
    "cf.colo.id: a data centre is a region here, and the limit is the region's.",
    "Paths are compared as the proxy passes them on: let it normalise them, as Cloudflare does.",
    "A header that comes more than once is taken by its first value.",
    "Rules do not end one another: a request must pass each that matches, and what one denies \
     no other counts.",
];

/// The fields of a ruleset that say nothing of its rules.
const RULESET: &[&str] = &[
    "id",
    "name",
    "description",
    "kind",
    "phase",
    "version",
    "last_updated",
    "source",
    "rules",
];
const ANSWER: &[&str] = &["result", "success", "errors", "messages", "result_info"];
const PHASE: &str = "http_ratelimit";

pub(super) fn read(documents: &[At<'_>]) -> Option<Read> {
    let mut drafts = Vec::new();
    let mut domain = "imported".to_owned();
    for document in documents {
        let document = match document.peek("result") {
            Some(result) => {
                leftovers(document, ANSWER, &mut drafts);
                result
            }
            None => document.clone(),
        };
        if document.node.is_list() {
            rules(&document, &mut drafts)?;
        } else if let Some(list) = document.peek("rules") {
            leftovers(&document, RULESET, &mut drafts);
            if let Some(name) = document.peek("name").and_then(|at| at.scalar()) {
                name.clone_into(&mut domain);
            }
            phase(&document)?;
            rules(&list, &mut drafts)?;
        } else if document.peek("expression").is_some() || document.peek("ratelimit").is_some() {
            drafts.push(rule::read(&document)?);
        } else {
            return document.expected("a ruleset with its rules, a list of rules, or a rule");
        }
    }
    let assumed = ASSUMED.iter().map(|&text| text.to_owned()).collect();
    Some(Read {
        domain,
        drafts,
        assumed,
    })
}

fn phase(ruleset: &At<'_>) -> Option<()> {
    match ruleset.peek("phase") {
        Some(phase) if phase.scalar() != Some(PHASE) => {
            phase.expected(format_args!("{PHASE}: other phases limit no rates"))
        }
        _ => Some(()),
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

/// Notes the fields around the rules that are not understood.
fn leftovers(at: &At<'_>, known: &[&str], drafts: &mut Vec<Draft>) {
    let entries = at.entries("a mapping").unwrap_or_default();
    for entry in entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
        let mut draft = Draft::new(&at.entry(entry), entry.key.clone());
        draft.drop("is not understood");
        drafts.push(draft);
    }
}
