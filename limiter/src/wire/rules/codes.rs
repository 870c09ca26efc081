//! The words of a rule and the numbers they travel as.
//!
//! A number that is nobody's word is a newer release's.

use super::Trouble;
use crate::{
    quota::Algorithm,
    rule::{Action, Commit, Consistency, Fallback, HeaderForm, Scope},
    wire::{quota_headers, rule as wire},
};

pub(super) fn algorithm(code: i32) -> Result<Algorithm, Trouble> {
    Ok(
        match wire::Algorithm::try_from(code).map_err(|_| Trouble::Unknown)? {
            wire::Algorithm::SlidingWindow => Algorithm::SlidingWindow,
            wire::Algorithm::FixedWindow => Algorithm::FixedWindow,
            wire::Algorithm::TokenBucket => Algorithm::TokenBucket,
        },
    )
}

pub(super) const fn algorithm_code(word: Algorithm) -> i32 {
    (match word {
        Algorithm::SlidingWindow => wire::Algorithm::SlidingWindow,
        Algorithm::FixedWindow => wire::Algorithm::FixedWindow,
        Algorithm::TokenBucket => wire::Algorithm::TokenBucket,
    }) as i32
}

pub(super) fn scope(code: i32) -> Result<Scope, Trouble> {
    Ok(
        match wire::Scope::try_from(code).map_err(|_| Trouble::Unknown)? {
            wire::Scope::Region => Scope::Region,
            wire::Scope::Pop => Scope::Pop,
            wire::Scope::Global => Scope::Global,
        },
    )
}

pub(super) const fn scope_code(word: Scope) -> i32 {
    (match word {
        Scope::Region => wire::Scope::Region,
        Scope::Pop => wire::Scope::Pop,
        Scope::Global => wire::Scope::Global,
    }) as i32
}

pub(super) fn consistency(code: i32) -> Result<Consistency, Trouble> {
    Ok(
        match wire::Consistency::try_from(code).map_err(|_| Trouble::Unknown)? {
            wire::Consistency::Leased => Consistency::Leased,
            wire::Consistency::Edge => Consistency::Edge,
            wire::Consistency::Exact => Consistency::Exact,
        },
    )
}

pub(super) const fn consistency_code(word: Consistency) -> i32 {
    (match word {
        Consistency::Leased => wire::Consistency::Leased,
        Consistency::Edge => wire::Consistency::Edge,
        Consistency::Exact => wire::Consistency::Exact,
    }) as i32
}

pub(super) fn fallback(code: i32) -> Result<Fallback, Trouble> {
    Ok(
        match wire::Fallback::try_from(code).map_err(|_| Trouble::Unknown)? {
            wire::Fallback::Allow => Fallback::Allow,
            wire::Fallback::Deny => Fallback::Deny,
        },
    )
}

pub(super) const fn fallback_code(word: Fallback) -> i32 {
    (match word {
        Fallback::Allow => wire::Fallback::Allow,
        Fallback::Deny => wire::Fallback::Deny,
    }) as i32
}

pub(super) fn action(code: i32) -> Result<Action, Trouble> {
    Ok(
        match wire::Action::try_from(code).map_err(|_| Trouble::Unknown)? {
            wire::Action::Enforce => Action::Deny,
            wire::Action::Shadow => Action::Shadow,
        },
    )
}

pub(super) const fn action_code(word: Action) -> i32 {
    (match word {
        Action::Deny => wire::Action::Enforce,
        Action::Shadow => wire::Action::Shadow,
    }) as i32
}

/// Only the region asks; a word that it does not know is the safe one.
pub(super) fn commit(code: i32) -> Commit {
    match wire::Commit::try_from(code) {
        Ok(wire::Commit::Fast) => Commit::Fast,
        Ok(wire::Commit::Durable) | Err(_) => Commit::Durable,
    }
}

pub(super) const fn commit_code(word: Commit) -> i32 {
    (match word {
        Commit::Durable => wire::Commit::Durable,
        Commit::Fast => wire::Commit::Fast,
    }) as i32
}

/// What a client is told decides nothing; a form that is not known is told not at
/// all.
pub(super) fn header_form(code: i32) -> HeaderForm {
    use quota_headers::Form;
    match Form::try_from(code) {
        Ok(Form::Draft) => HeaderForm::Draft,
        Ok(Form::XRatelimit) => HeaderForm::XRateLimit,
        Ok(Form::Both) => HeaderForm::Both,
        Ok(Form::None) | Err(_) => HeaderForm::None,
    }
}

pub(super) const fn header_form_code(word: HeaderForm) -> i32 {
    use quota_headers::Form;
    (match word {
        HeaderForm::Draft => Form::Draft,
        HeaderForm::XRateLimit => Form::XRatelimit,
        HeaderForm::Both => Form::Both,
        HeaderForm::None => Form::None,
    }) as i32
}
