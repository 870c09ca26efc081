//! A problem document (RFC 9457), read back into words.

use std::fmt;

use serde_json::Value;

/// Where the service's own types of problem are named.
const OURS: &str = "urn:weir:problem:";

/// Why the service did not do as asked, in its own words.
#[derive(Debug)]
pub struct Problem {
    kind: String,
    title: String,
    detail: String,
}

impl Problem {
    /// The problem in an answer, if it is one.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let text = |name: &str| Some(answer.get(name)?.as_str()?.to_owned());
        Some(Self {
            kind: text("type")?,
            title: text("title")?,
            detail: text("detail").unwrap_or_default(),
        })
    }

    /// Whether it is of this type, one of the service's own.
    pub fn is(&self, kind: &str) -> bool {
        self.kind.strip_prefix(OURS) == Some(kind)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.as_str() {
            "" => f.write_str(&self.title),
            detail => write!(f, "{}: {detail}", self.title),
        }
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_is_told_in_the_service_s_words() {
        let kind = "urn:weir:problem:late";
        let answer = json!({"type": kind, "title": "Too late", "detail": "after 5 s"});
        let problem = Problem::read(&answer).unwrap();
        assert_eq!(problem.to_string(), "Too late: after 5 s");
        assert!(problem.is("late") && !problem.is("lat"));
        assert!(Problem::read(&json!({"error": "nginx"})).is_none());
    }
}
