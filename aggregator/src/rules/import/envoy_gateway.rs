//! Envoy Gateway: the rate limits of a `BackendTrafficPolicy`.
//!
//! Global limits are envoyproxy/ratelimit's: fixed windows, and a denied request
//! counts. Local ones are a bucket in each Envoy that is filled once a unit. Which
//! requests a policy is for stands in the `HTTPRoute` it targets, which is read if
//! it stands in the same file.

mod route;
mod rule;
mod selector;

pub(super) use route::target;

use super::{report::Draft, run::Read, source::fields};
use crate::rules::{at::At, fields::Fields};

const ASSUMED: &[&str] = &[
    "A policy that targets a Gateway is for all requests of it: the filter stands there.",
    "A header or query parameter that comes more than once is taken by its first value.",
];

const SPEC: &[&str] = &["rateLimit", "targetRef", "targetRefs", "targetSelectors"];

pub(super) fn read(documents: &[At<'_>]) -> Option<Read> {
    let mut found = Read {
        domain: "imported".into(),
        drafts: Vec::new(),
        assumed: ASSUMED.iter().map(|&text| text.to_owned()).collect(),
    };
    let documents: Vec<At<'_>> = documents.iter().flat_map(items).collect();
    let of = |kind: &str| {
        let wanted = move |at: &&At<'_>| kind_of(at) == Some(kind);
        documents.iter().filter(wanted).cloned().collect::<Vec<_>>()
    };
    let (policies, routes) = (of("BackendTrafficPolicy"), of("HTTPRoute"));
    if policies.is_empty() {
        let first = documents.first()?;
        return first.expected("a BackendTrafficPolicy");
    }
    for at in &policies {
        policy(at, &routes, &mut found.drafts)?;
    }
    Some(found)
}

/// The documents of a list of them.
fn items<'a>(at: &At<'a>) -> Vec<At<'a>> {
    match at.peek("items") {
        Some(list) if kind_of(at) == Some("List") => list.items("a list").unwrap_or_default(),
        _ => vec![at.clone()],
    }
}

fn kind_of<'a>(at: &At<'a>) -> Option<&'a str> {
    at.peek("kind").and_then(|kind| kind.scalar())
}

/// A document's name.
fn name_of<'a>(at: &At<'a>) -> Option<&'a str> {
    at.peek("metadata")?.peek("name")?.scalar()
}

fn policy(at: &At<'_>, routes: &[At<'_>], drafts: &mut Vec<Draft>) -> Option<()> {
    let name = name_of(at).unwrap_or("policy");
    let Some(spec) = at.peek("spec") else {
        return at.expected("a policy with a spec");
    };
    let mut common = Draft::new(&spec, name);
    let spec_fields = spec.entries("a mapping")?;
    for entry in spec_fields
        .iter()
        .filter(|entry| !SPEC.contains(&&*entry.key))
    {
        common.say(format!("{} limits no rate", entry.key));
    }
    let Some(limit) = spec.peek("rateLimit") else {
        common.refuse("it limits no rate");
        drafts.push(common);
        return Some(());
    };
    let target = route::target(&spec, routes, &mut common);
    let known = ["type", "global", "local"];
    let limit = fields(&limit, &known, &[], &mut common)?;
    let before = drafts.len();
    for local in [false, true] {
        let place = if local { "local" } else { "global" };
        if let Some(at) = limit.get(place) {
            let inner = fields(&at, &["rules", "shared"], &[], &mut common)?;
            rules(&inner, local, &target, &common, drafts)?;
        }
    }
    if drafts.len() == before {
        common.refuse("it has no rules");
        drafts.push(common);
    }
    Some(())
}

fn rules(
    fields: &Fields<'_>,
    local: bool,
    target: &route::Target,
    common: &Draft,
    drafts: &mut Vec<Draft>,
) -> Option<()> {
    let at = fields.need("rules")?;
    for (place, one) in at.items("a list of rules")?.iter().enumerate() {
        let mut draft = Draft::new(one, format!("{}/{place}", common.name));
        draft.notes.clone_from(&common.notes);
        rule::read(one, local, target, &mut draft)?;
        drafts.push(draft);
    }
    Some(())
}
