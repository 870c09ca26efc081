//! What is wrong with a rule file, and where.

use std::{cell::RefCell, collections::HashSet, error::Error, fmt};

use serde::Serialize;

/// The most problems that are shown of one file.
const SHOWN_MAX: usize = 100;

/// Where something stands in a file: line and column, both from 1; a column is
/// a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// One thing that is wrong with a rule file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The file's name, as it was given.
    pub file: String,
    /// Where it is; none if the file could not be read at all.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The field, as in `rules[2].window`; empty for the file as a whole.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// All that is wrong with a rule file, in the order of its lines. None of its
/// rules is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Diagnostic>);

/// Collects what is wrong while a file is read.
#[derive(Debug, Default)]
pub(super) struct Notes(RefCell<Vec<Note>>);

/// The file, if it is not the rule file; the place; the path to there; what is wrong.
type Note = (Option<String>, Place, String, String);

impl Notes {
    pub(super) fn add(&self, place: Place, path: &str, message: impl fmt::Display) {
        self.add_in(None, place, path, message);
    }

    /// The same of a file that the rule file names.
    pub(super) fn add_in(
        &self,
        file: Option<&str>,
        place: Place,
        path: &str,
        message: impl fmt::Display,
    ) {
        let (file, path) = (file.map(str::to_owned), path.to_owned());
        let note = (file, place, path, message.to_string());
        self.0.borrow_mut().push(note);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(super) fn into_problems(self, file: &str) -> Problems {
        let mut notes = self.0.into_inner();
        notes.sort_by(|(file, place, ..), (other, later, ..)| (file, place).cmp(&(other, later)));
        // What several rules are made of is read for each of them.
        let mut told = HashSet::new();
        notes.retain(|note| told.insert(note.clone()));
        let diagnostics = notes
            .into_iter()
            .map(|(list, place, path, message)| Diagnostic {
                file: list.unwrap_or_else(|| file.to_owned()),
                place: Some(place),
                path,
                message,
            });
        Problems(diagnostics.collect())
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(Place { line, column }) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, diagnostic) in self.0.iter().take(SHOWN_MAX).enumerate() {
            let line_end = if place == 0 { "" } else { "\n" };
            write!(f, "{line_end}{diagnostic}")?;
        }
        match self.0.len().checked_sub(SHOWN_MAX) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "\nand {more} more"),
        }
    }
}

impl Error for Problems {}
