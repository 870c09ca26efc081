//! Kuadrant: the limits of a `RateLimitPolicy`, or of Limitador's own file.
//!
//! Every limit whose conditions hold is counted, or none is; a request without a
//! counter's value is not the limit's business. Windows are fixed.

mod cel;
mod limitador;
mod policy;
mod variable;

use super::run::{Options, Read};
use crate::rules::at::At;

const ASSUMED: &[&str] = &[
    "A window begins with the clock, not with a key's first request: as much for each window, \
     at other instants.",
    "A policy that targets a Gateway is for all requests of it: the filter stands there.",
    "A header that comes more than once is taken by its first value.",
];

pub(super) fn read(documents: &[At<'_>], options: &Options) -> Option<Read> {
    let mut found = Read {
        domain: "imported".into(),
        drafts: Vec::new(),
        assumed: ASSUMED.iter().map(|&text| text.to_owned()).collect(),
    };
    let is_route = |at: &&At<'_>| {
        let kind = at.peek("kind");
        kind.and_then(|kind| kind.scalar()) == Some("HTTPRoute")
    };
    let routes: Vec<_> = documents.iter().filter(is_route).cloned().collect();
    for document in documents.iter().filter(|at| !is_route(at)) {
        let kind = document.peek("kind").and_then(|kind| kind.scalar());
        if document.node.is_list() {
            limitador::read(document, &options.entries, &mut found)?;
        } else if kind == Some("Limitador") {
            let limits = document.peek("spec").and_then(|spec| spec.peek("limits"));
            match limits {
                Some(limits) => limitador::read(&limits, &options.entries, &mut found)?,
                None => return document.expected("a Limitador with limits in its spec"),
            }
        } else if kind == Some("RateLimitPolicy") {
            policy::read(document, &routes, &options.entries, &mut found)?;
        } else {
            return document.expected("a RateLimitPolicy, or a list of Limitador's limits");
        }
    }
    Some(found)
}
