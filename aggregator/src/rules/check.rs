//! `weir rules check`: what a rule file says, or what is wrong with it.

use std::path::Path;

use limiter::bound::Fleet;
use serde::Serialize;

use super::{
    diagnostic::{Diagnostic, Problems},
    file::RuleFile,
    report::RulesReport,
    table,
};

/// How to say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As a table, or one line for each error.
    #[default]
    Table,
    /// As one JSON object.
    Json,
}

#[derive(Serialize)]
struct Checked<'a> {
    file: &'a str,
    valid: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    report: Option<RulesReport>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Diagnostic],
}

/// Reads the rule file at `path`; the text to print, which ends with a line
/// end, and the status to exit with: 0, or 1 if anything is wrong. Bounds are
/// those of `fleet`.
pub fn check(path: &Path, format: Format, fleet: Fleet) -> (String, u8) {
    let file = path.display().to_string();
    say(&file, RuleFile::load(path), format, fleet)
}

/// Says what a file holds, or what is wrong with it.
pub(super) fn say(
    file: &str,
    read: Result<RuleFile, Problems>,
    format: Format,
    fleet: Fleet,
) -> (String, u8) {
    let status = u8::from(read.is_err());
    let report = read.map(|file| RulesReport::of(&file, fleet));
    let text = match (format, report) {
        (Format::Table, Ok(report)) => table::table(&report),
        (Format::Table, Err(problems)) => format!("{problems}\n"),
        (Format::Json, report) => json(file, report),
    };
    (text, status)
}

fn json(file: &str, report: Result<RulesReport, Problems>) -> String {
    let (report, errors) = match report {
        Ok(report) => (Some(report), Vec::new()),
        Err(Problems(errors)) => (None, errors),
    };
    let checked = Checked {
        file,
        valid: report.is_some(),
        report,
        errors: &errors,
    };
    // Texts and numbers only: nothing that JSON cannot say.
    let text = serde_json::to_string_pretty(&checked).unwrap_or_default();
    format!("{text}\n")
}
