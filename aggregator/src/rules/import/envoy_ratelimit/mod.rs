//! envoyproxy/ratelimit: a tree of descriptors, walked entry by entry.
//!
//! A limit is found for a descriptor of just as many entries as it stands deep.
//! At each level an entry takes one branch and never another: that of its value,
//! else the first whose value has a `*` and fits, else the one without a value.
//! So a branch that is less particular leaves out all that the others take, also
//! where those have no limit. All windows are fixed, and a denied request counts.

mod limits;
mod tree;

use super::run::{Options, Read};
use crate::rules::{at::At, tree::Value};

const DOCUMENTS: &str = "one domain: put each into a file of its own";

pub(super) fn read(documents: &[At<'_>], options: &Options) -> Option<Read> {
    let (root, rest) = documents.split_first()?;
    if let Some(other) = rest.first() {
        return other.expected(DOCUMENTS);
    }
    let entries = root.entries("a mapping of domain and descriptors")?;
    let known = ["domain", "descriptors", "name"];
    let mut drafts = Vec::new();
    for entry in entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
        let at = root.entry(entry);
        let mut draft = super::report::Draft::new(&at, entry.key.clone());
        draft.drop("is not understood");
        drafts.push(draft);
    }
    let domain = match root.peek("domain") {
        Some(at) => at.text("a domain")?.to_owned(),
        None => return root.refuse("expected a mapping with a domain and descriptors"),
    };
    let empty = Vec::new();
    let descriptors = match root.peek("descriptors") {
        Some(at) if matches!(at.node.value, Value::List(_)) => at.items("a list")?,
        Some(at) if at.scalar().is_none() && !at.node.is_map() => empty,
        Some(at) => return at.expected("a list of descriptors"),
        None => empty,
    };
    let nodes = tree::read(&descriptors)?;
    drafts.extend(limits::all(&nodes, &options.entries));
    Some(Read {
        domain,
        drafts,
        assumed: vec![
            "Which descriptors a route sends stands elsewhere: each limit is asked about \
             every request that has all its entries."
                .into(),
        ],
    })
}
