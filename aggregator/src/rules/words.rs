//! The words a rule file chooses among, and what they stand for.

use limiter::{
    quota::Algorithm,
    rule::{Action, Commit, Consistency, Fallback, Scope},
};

use super::{at::At, suggest};

/// Words and what they stand for.
pub(super) type Words<T> = &'static [(&'static str, T)];

pub(super) const ALGORITHM: Words<Algorithm> = &[
    ("sliding_window", Algorithm::SlidingWindow),
    ("fixed_window", Algorithm::FixedWindow),
    ("token_bucket", Algorithm::TokenBucket),
];

pub(super) const SCOPE: Words<Scope> = &[
    ("pop", Scope::Pop),
    ("region", Scope::Region),
    ("global", Scope::Global),
];

pub(super) const CONSISTENCY: Words<Consistency> = &[
    ("edge", Consistency::Edge),
    ("leased", Consistency::Leased),
    ("exact", Consistency::Exact),
];

pub(super) const FALLBACK: Words<Fallback> =
    &[("allow", Fallback::Allow), ("deny", Fallback::Deny)];

pub(super) const ACTION: Words<Action> = &[("deny", Action::Deny), ("shadow", Action::Shadow)];

pub(super) const COMMIT: Words<Commit> = &[("durable", Commit::Durable), ("fast", Commit::Fast)];

pub(super) const BOOL: Words<bool> = &[("true", true), ("false", false)];

/// What the word at this place stands for.
pub(super) fn read<T: Copy>(at: &At<'_>, words: Words<T>) -> Option<T> {
    let found = at.scalar().and_then(|text| {
        let mut words = words.iter();
        words.find(|(word, _)| *word == text)
    });
    match found {
        Some((_, value)) => Some(*value),
        None => at.expected(suggest::list(&names(words))),
    }
}

/// The word for a value.
pub(super) fn name<T: PartialEq>(words: Words<T>, value: &T) -> &'static str {
    let found = words.iter().find(|(_, other)| other == value);
    found.map_or("?", |(word, _)| word)
}

/// The words alone, in order.
pub(super) fn names<T>(words: Words<T>) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}
