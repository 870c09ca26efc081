//! The fields of a mapping: those that are known, those that are not, and those
//! that are yet to come.

use super::{at::At, later, suggest, tree::Entry};

/// The fields of a mapping.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    at: At<'a>,
    entries: &'a [Entry],
}

impl<'a> Fields<'a> {
    /// Notes every field that is not known; `later` are those that will be.
    pub(super) fn new(at: &At<'a>, known: &[&str], later: &[&str]) -> Option<Self> {
        let entries = at.entries(&format!("a mapping of {}", suggest::list(known)))?;
        for entry in entries {
            let name = &*entry.key;
            let field = at.entry(entry);
            if later.contains(&name) {
                at.notes.add(entry.place, &field.path, later::NOT_YET);
            } else if !known.contains(&name) {
                let message = suggest::unknown("field", name, known);
                at.notes.add(entry.place, &field.path, message);
            }
        }
        let at = at.clone();
        Some(Self { at, entries })
    }

    /// The fields of somebody else's mapping.
    pub(super) fn unchecked(at: &At<'a>, entries: &'a [Entry]) -> Self {
        let at = at.clone();
        Self { at, entries }
    }

    /// A field, if it is there.
    pub(super) fn get(&self, name: &str) -> Option<At<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        Some(self.at.entry(entry))
    }

    /// A field, or a note that it is missing.
    pub(super) fn need(&self, name: &str) -> Option<At<'a>> {
        self.get(name).or_else(|| {
            let path = super::tree::child(&self.at.path, name);
            let place = self.at.node.place;
            self.at
                .notes
                .add(place, &path, "missing, and has no default");
            None
        })
    }

    /// What a field says, or the default if it is not there. What it says
    /// wrongly has been noted, and the default stands in for it.
    pub(super) fn or<T>(
        &self,
        name: &str,
        default: T,
        read: impl FnOnce(&At<'a>) -> Option<T>,
    ) -> T {
        self.get(name).and_then(|at| read(&at)).unwrap_or(default)
    }
}
