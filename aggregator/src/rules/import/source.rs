//! Reading somebody else's fields: what is not known is noted, not refused.

use crate::rules::{at::At, fields::Fields, numbers::digits};

use super::report::Draft;

/// The fields of a mapping. Those that are neither known nor harmless are noted
/// as dropped.
pub(super) fn fields<'a>(
    at: &At<'a>,
    known: &[&str],
    harmless: &[&str],
    draft: &mut Draft,
) -> Option<Fields<'a>> {
    let entries = at.entries("a mapping")?;
    for entry in entries {
        let name = &*entry.key;
        if harmless.contains(&name) {
            draft.say(format!("{name} plays no part in deciding"));
        } else if !known.contains(&name) {
            let path = relative(&at.entry(entry).path, &draft.source);
            draft.drop(format!("{path} is not understood"));
        }
    }
    Some(Fields::unchecked(at, entries))
}

/// A path as seen from a rule that stands at `from`.
fn relative(path: &str, from: &str) -> String {
    let below = path.strip_prefix(from).unwrap_or(path);
    below.trim_start_matches('.').to_owned()
}

/// The text of a field; none if it is not there.
pub(super) fn text(fields: &Fields<'_>, name: &str) -> Option<String> {
    let at = fields.get(name)?;
    at.text("a text").map(str::to_owned)
}

/// The number of a field; none if it is not there, or noted to be wrong.
pub(super) fn number(fields: &Fields<'_>, name: &str) -> Option<u64> {
    let at = fields.get(name)?;
    number_of(&at)
}

/// A whole number, in quotes or not.
pub(super) fn number_of(at: &At<'_>) -> Option<u64> {
    let what = "a whole number";
    digits(at.text(what)?).or_else(|| at.expected(what))
}

/// Whether a field says `true`.
pub(super) fn flag(fields: &Fields<'_>, name: &str) -> bool {
    let said = fields.get(name).and_then(|at| match at.scalar() {
        Some("true" | "True" | "yes" | "on") => Some(true),
        Some("false" | "False" | "no" | "off") | None => Some(false),
        Some(_) => at.expected("true or false"),
    });
    said.unwrap_or(false)
}

/// The items of a field that is a list; none if it is not there.
pub(super) fn list<'a>(fields: &Fields<'a>, name: &str) -> Vec<At<'a>> {
    let items = fields.get(name).and_then(|at| match at.node.is_list() {
        true => at.items("a list"),
        false => at.expected("a list"),
    });
    items.unwrap_or_default()
}
