//! Names that rules can have, made of names that others gave.

use std::collections::HashSet;

use limiter::rule::text::{self, NAME_LEN_MAX};

use super::report::Draft;

/// What room a number that tells two names apart may take.
const NUMBER_LEN_MAX: usize = 6;

/// A name with what no rule's name can hold replaced, and cut.
pub(super) fn plain(name: &str) -> String {
    let letter = |letter: char| match letter {
        '"' | '\\' => '_',
        ' '..='~' => letter,
        _ => '_',
    };
    let name: String = name
        .trim()
        .chars()
        .map(letter)
        .take(NAME_LEN_MAX - NUMBER_LEN_MAX)
        .collect();
    match text::name(name.trim()) {
        Ok(()) => name.trim().to_owned(),
        Err(_) => "rule".to_owned(),
    }
}

/// Gives every rule a name of its own.
pub(super) fn settle(drafts: &mut [Draft]) {
    let mut taken = HashSet::new();
    for draft in drafts {
        let Some(rule) = &mut draft.rule else {
            continue;
        };
        let wanted = plain(&rule.name);
        let others = (2_u32..).map(|number| format!("{wanted}-{number}"));
        let mut names = std::iter::once(wanted.clone()).chain(others);
        if let Some(name) = names.find(|name| !taken.contains(name)) {
            taken.insert(name.clone());
            rule.name = name;
        }
    }
}
