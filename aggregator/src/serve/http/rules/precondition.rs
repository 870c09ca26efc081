//! `If-Match` and `If-None-Match`: what must be in force for a change to be made.
//!
//! A revision's tag is its number in quotes. A change needs no condition; with one,
//! of two who start from the same revision the second is told.

use axum::http::{HeaderMap, HeaderName, StatusCode, header};

use super::Problem;

/// What a client wants to be in force.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Precondition {
    only: Option<Tags>,
    none_of: Option<Tags>,
}

#[derive(Debug, PartialEq, Eq)]
enum Tags {
    /// `*`: any revision that there is.
    Any,
    Of(Vec<u64>),
}

impl Precondition {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        Ok(Self {
            only: tags(headers, &header::IF_MATCH)?,
            none_of: tags(headers, &header::IF_NONE_MATCH)?,
        })
    }

    /// Whether the revision in force may be replaced.
    pub(super) fn accept(&self, revision: u64) -> Result<(), Problem> {
        let only = self.only.as_ref().is_none_or(|tags| tags.has(revision));
        let none_of = self.none_of.as_ref().is_none_or(|tags| !tags.has(revision));
        if only && none_of {
            return Ok(());
        }
        let detail = format!("revision {revision} is in force; look at it, and ask again");
        let title = "The rules are not those that were meant";
        let status = StatusCode::PRECONDITION_FAILED;
        Err(Problem::new(status, "precondition", title, detail).with("revision", revision))
    }
}

impl Tags {
    fn has(&self, revision: u64) -> bool {
        match self {
            Self::Any => revision > 0,
            Self::Of(tags) => tags.contains(&revision),
        }
    }
}

/// Whether a reader says that it has this revision. Of tags that it got elsewhere it
/// has none of ours.
pub(super) fn has_it_already(headers: &HeaderMap, revision: u64) -> bool {
    let tags = tags(headers, &header::IF_NONE_MATCH);
    matches!(tags, Ok(Some(tags)) if tags.has(revision))
}

fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, Problem> {
    let wrong = || {
        let detail = format!("{name} takes revisions in quotes, as in \"7\", or *");
        Problem::malformed(detail).with("field", name.as_str())
    };
    let mut found = Vec::new();
    let mut values = headers.get_all(name).iter().peekable();
    if values.peek().is_none() {
        return Ok(None);
    }
    for value in values {
        for tag in value.to_str().map_err(|_| wrong())?.split(',') {
            let tag = tag.trim();
            if tag == "*" {
                return Ok(Some(Tags::Any));
            }
            let number = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            let number = number.and_then(|number| number.parse().ok());
            found.push(number.ok_or_else(wrong)?);
        }
    }
    Ok(Some(Tags::Of(found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn with(name: HeaderName, value: &str) -> Result<Precondition, Problem> {
        let value = HeaderValue::from_str(value).unwrap();
        Precondition::of(&HeaderMap::from_iter([(name, value)]))
    }

    #[test]
    fn a_change_is_accepted_on_the_revisions_that_it_names() {
        let accepts = |precondition: &Precondition| {
            let revisions = [0, 1, 2, 3].into_iter();
            let accepted = revisions.filter(|revision| precondition.accept(*revision).is_ok());
            accepted.collect::<Vec<u64>>()
        };
        for (name, value, accepted) in [
            (header::IF_MATCH, "\"2\"", &[2][..]),
            (header::IF_MATCH, "\"1\", \"3\"", &[1, 3]),
            (header::IF_MATCH, "*", &[1, 2, 3]),
            (header::IF_NONE_MATCH, "*", &[0]),
            (header::IF_NONE_MATCH, "\"2\"", &[0, 1, 3]),
        ] {
            let precondition = with(name, value).unwrap();
            assert_eq!(accepts(&precondition), accepted, "{value}");
        }
        assert_eq!(
            accepts(&Precondition::of(&HeaderMap::new()).unwrap()),
            [0, 1, 2, 3]
        );
    }

    #[test]
    fn what_is_no_revision_is_refused_and_not_passed_over() {
        for wrong in ["2", "\"two\"", "W/\"2\"", "\"2\" \"3\"", ""] {
            assert!(with(header::IF_MATCH, wrong).is_err(), "{wrong}");
        }
    }
}
