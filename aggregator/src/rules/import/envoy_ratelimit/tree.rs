//! The descriptors as they stand in the file.

use crate::rules::{
    at::At,
    import::{
        build,
        report::Draft,
        source::{fields, flag, list, number, text},
    },
};

use limiter::time::Micros;

const DESCRIPTOR: &[&str] = &[
    "key",
    "value",
    "rate_limit",
    "descriptors",
    "shadow_mode",
    "quota_mode",
    "share_threshold",
];
const DESCRIPTOR_HARMLESS: &[&str] = &["detailed_metric", "value_to_metric", "metadata"];
const LIMIT: &[&str] = &["unit", "requests_per_unit", "unlimited", "name", "replaces"];

/// A descriptor and those below it.
pub(super) struct Node {
    pub(super) key: String,
    /// Empty is none, as in the source.
    pub(super) value: Option<String>,
    pub(super) limit: Option<Limit>,
    pub(super) children: Vec<Node>,
    /// What was noted about it: it goes with its limit, or stands alone.
    pub(super) draft: Draft,
    pub(super) shadow: bool,
    pub(super) quota: bool,
    pub(super) share: bool,
}

pub(super) struct Limit {
    pub(super) name: Option<String>,
    pub(super) replaces: Vec<String>,
    /// So many per window; none if unlimited.
    pub(super) per: Option<(u64, Micros)>,
}

pub(super) fn read(descriptors: &[At<'_>]) -> Option<Vec<Node>> {
    let nodes: Vec<_> = descriptors.iter().map(node).collect();
    let nodes: Vec<Node> = nodes.into_iter().collect::<Option<_>>()?;
    for (place, (one, at)) in nodes.iter().zip(descriptors).enumerate() {
        let same = |other: &Node| other.key == one.key && other.value == one.value;
        if nodes.iter().take(place).any(same) {
            return at.refuse("a descriptor of this key and value came before");
        }
    }
    Some(nodes)
}

fn node(at: &At<'_>) -> Option<Node> {
    let mut draft = Draft::new(at, "");
    let fields = fields(at, DESCRIPTOR, DESCRIPTOR_HARMLESS, &mut draft)?;
    let key = fields.need("key")?.text("a key")?.to_owned();
    let value = text(&fields, "value").filter(|value| !value.is_empty());
    let limit = match fields.get("rate_limit") {
        Some(at) => Some(limit(&at, &mut draft)?),
        None => None,
    };
    Some(Node {
        children: read(&list(&fields, "descriptors"))?,
        shadow: flag(&fields, "shadow_mode"),
        quota: flag(&fields, "quota_mode"),
        share: flag(&fields, "share_threshold"),
        key,
        value,
        limit,
        draft,
    })
}

fn limit(at: &At<'_>, draft: &mut Draft) -> Option<Limit> {
    let fields = fields(at, LIMIT, &[], draft)?;
    let names = list(&fields, "replaces");
    let name_of = |at: &At<'_>| match at.peek("name") {
        Some(name) => name.text("a name").map(str::to_owned),
        None => at.expected("a mapping with the name of a limit"),
    };
    let replaces: Option<Vec<_>> = names.iter().map(name_of).collect();
    let per = match flag(&fields, "unlimited") {
        true => None,
        false => {
            let unit_at = fields.need("unit")?;
            let unit = unit_at.scalar().and_then(build::unit);
            let unit =
                unit.or_else(|| unit_at.expected("second, minute, hour, day, week, month or year"));
            build::note_unit(draft, unit_at.scalar().unwrap_or_default());
            // Not said is zero, as in the source.
            let requests = number(&fields, "requests_per_unit").unwrap_or(0);
            Some((requests, unit?))
        }
    };
    Some(Limit {
        name: text(&fields, "name").filter(|name| !name.is_empty()),
        replaces: replaces?,
        per,
    })
}
