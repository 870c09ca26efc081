//! The fields of a mapping: those that are known, and those that are not.

use super::{at::At, suggest, tree::Entry};

/// The fields of a mapping.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    at: At<'a>,
    entries: &'a [Entry],
    /// Where a field is looked for that is not here.
    under: Option<Box<Fields<'a>>>,
}

impl<'a> Fields<'a> {
    /// Notes every field that is not known.
    pub(super) fn new(at: &At<'a>, known: &[&str]) -> Option<Self> {
        let entries = at.entries(&format!("a mapping of {}", suggest::list(known)))?;
        for entry in entries {
            let name = &*entry.key;
            let field = at.entry(entry);
            if !known.contains(&name) {
                let message = suggest::unknown("field", name, known);
                at.notes.add(entry.place, &field.path, message);
            }
        }
        Some(Self::unchecked(at, entries))
    }

    /// The fields of somebody else's mapping.
    pub(super) fn unchecked(at: &At<'a>, entries: &'a [Entry]) -> Self {
        let at = at.clone();
        let under = None;
        Self { at, entries, under }
    }

    /// These fields, and for what is not among them those.
    pub(super) fn over(self, under: &Self) -> Self {
        let under = Some(Box::new(under.clone()));
        Self { under, ..self }
    }

    /// Whether it has none itself.
    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A field, if it is there.
    pub(super) fn get(&self, name: &str) -> Option<At<'a>> {
        match self.entries.iter().find(|entry| entry.key == name) {
            Some(entry) => Some(self.at.entry(entry)),
            None => self.under.as_ref()?.get(name),
        }
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
