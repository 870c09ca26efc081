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
    errors: Vec<String>,
}

impl Problem {
    /// The problem in an answer, if it is one.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let text = |name: &str| Some(answer.get(name)?.as_str()?.to_owned());
        Some(Self {
            kind: text("type")?,
            title: text("title")?,
            detail: text("detail").unwrap_or_default(),
            errors: errors(answer),
        })
    }

    /// Whether it is of this type, one of the service's own.
    pub fn is(&self, kind: &str) -> bool {
        self.kind.strip_prefix(OURS) == Some(kind)
    }

    /// What is wrong with a file that was sent, each with its place:
    /// `line:column: field: what`. Empty if it is nothing of that kind.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }
}

fn errors(answer: &Value) -> Vec<String> {
    let errors = answer.get("errors").and_then(Value::as_array);
    let errors = errors.into_iter().flatten();
    let line = |error: &Value| {
        let number = |name: &str| error.get(name)?.as_u64();
        let text = |name: &str| Some(error.get(name)?.as_str()?.to_owned());
        let place = number("line").zip(number("column"));
        let place = place.map(|(line, column)| format!("{line}:{column}"));
        let path = text("path").filter(|path| !path.is_empty());
        let parts = [place, path, text("message")];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    errors.map(line).collect()
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
        assert!(problem.errors().is_empty());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_place() {
        let errors = json!([
            {"line": 5, "column": 12, "path": "rules[0].limit", "message": "too small"},
            {"line": null, "column": null, "path": "", "message": "too long"},
        ]);
        let answer = json!({"type": "urn:weir:problem:bad-rules", "title": "t", "errors": errors});
        let problem = Problem::read(&answer).unwrap();
        assert_eq!(
            problem.errors(),
            ["5:12: rules[0].limit: too small", "too long"]
        );
    }
}
