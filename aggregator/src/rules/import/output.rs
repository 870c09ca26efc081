//! The rule file that an import writes, read back before anybody sees it.

use limiter::rule::Rule;

use super::report::{Draft, Fidelity};
use crate::rules::{file::RuleFile, write};

/// The rule file of these drafts; else why there can be none.
pub(super) fn write(domain: &str, drafts: &[Draft]) -> Result<String, String> {
    let made = drafts
        .iter()
        .filter_map(|draft| Some((draft, draft.rule.clone()?)));
    let (made, rules): (Vec<&Draft>, Vec<Rule>) = made.unzip();
    let comments: Vec<_> = made.into_iter().map(comments).collect();
    let text = write::file(domain, &rules, &comments);
    let read = RuleFile::parse("rules", text.as_bytes()).map_err(|wrong| wrong.to_string())?;
    let same = read.rules == rules && write::file(&read.domain, &read.rules, &comments) == text;
    match same {
        true => Ok(text),
        false => Err("they would read back as something else".into()),
    }
}

/// What stands above a rule: where it is from, and what it is not.
fn comments(draft: &Draft) -> Vec<String> {
    let fidelity = draft.fidelity().word();
    let from = match &*draft.source {
        "" => &draft.name,
        source => source,
    };
    let mut lines = vec![format!("{fidelity}, from {}", line(from))];
    let costly = draft
        .notes
        .iter()
        .filter(|note| note.fidelity != Fidelity::Exact);
    lines.extend(costly.map(|note| format!("  {}", line(&note.line()))));
    lines
}

/// A comment ends with its line.
fn line(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}
