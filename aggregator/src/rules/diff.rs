//! `weir rules diff`: what a change of rules changes, and which counts go on.

use std::{fmt::Write, path::Path};

use limiter::{bound::Fleet, rule::Rule, time::Micros};
use serde::Serialize;
use serde_json::Value;

use super::{check::Format, diagnostic::Problems, file::RuleFile, report::RuleReport};

/// What of a rule's report is not the rule.
const WORKED_OUT: &[&str] = &["name", "bound", "asks_percent", "held_percent"];

#[derive(Debug, Serialize)]
struct Difference {
    old: String,
    new: String,
    /// Of the file itself.
    changes: Vec<Change>,
    rules: Vec<RuleDifference>,
    /// How many rules are as they were.
    unchanged: usize,
}

#[derive(Debug, Serialize)]
struct RuleDifference {
    name: String,
    what: What,
    /// Whether what was counted still counts.
    counts: Counts,
    changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Added,
    Removed,
    Changed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Counts {
    /// They go on.
    Kept,
    /// They start anew.
    Anew,
    /// They are given up.
    GivenUp,
}

#[derive(Debug, Serialize)]
struct Change {
    field: String,
    /// None if it was not there.
    from: Option<String>,
    /// None if it is no more.
    to: Option<String>,
}

/// Compares two rule files: the text to print, which ends with a line end, or what
/// is wrong with one of them.
pub fn diff(old: &Path, new: &Path, format: Format) -> Result<String, Problems> {
    let (before, after) = (RuleFile::load(old)?, RuleFile::load(new)?);
    let names = (&*old.display().to_string(), &*new.display().to_string());
    Ok(say(names, &before, &after, format))
}

pub(super) fn say(
    (old, new): (&str, &str),
    before: &RuleFile,
    after: &RuleFile,
    format: Format,
) -> String {
    let rules = rules(before, after);
    let same = after
        .rules
        .iter()
        .filter(|rule| before.rules.contains(rule))
        .count();
    let anew = before.domain != after.domain;
    let difference = Difference {
        old: old.to_owned(),
        new: new.to_owned(),
        changes: file_changes(before, after),
        unchanged: if anew { 0 } else { same },
        rules,
    };
    match format {
        Format::Table => table(&difference),
        // Texts and numbers only: nothing that JSON cannot say.
        Format::Json => serde_json::to_string_pretty(&difference).unwrap_or_default() + "\n",
    }
}

fn file_changes(before: &RuleFile, after: &RuleFile) -> Vec<Change> {
    let proxies = |file: &RuleFile| {
        let texts: Vec<_> = file
            .trusted_proxies
            .iter()
            .map(ToString::to_string)
            .collect();
        if texts.is_empty() {
            "nobody".to_owned()
        } else {
            texts.join(" ")
        }
    };
    let fields = [
        ("domain", before.domain.clone(), after.domain.clone()),
        ("trusted_proxies", proxies(before), proxies(after)),
    ];
    let changed = fields.into_iter().filter(|(_, from, to)| from != to);
    let change = |(field, from, to): (&str, String, String)| Change {
        field: field.into(),
        from: Some(from),
        to: Some(to),
    };
    changed.map(change).collect()
}

fn rules(before: &RuleFile, after: &RuleFile) -> Vec<RuleDifference> {
    let named = |rules: &[Rule], name: &str| rules.iter().find(|rule| rule.name == name).cloned();
    let domain = before.domain == after.domain;
    let mut all = Vec::new();
    for rule in &after.rules {
        let name = rule.name.clone();
        match named(&before.rules, &name) {
            None => {
                let (what, counts, changes) = (What::Added, Counts::Anew, Vec::new());
                all.push(RuleDifference {
                    name,
                    what,
                    counts,
                    changes,
                });
            }
            Some(old) if old != *rule || !domain => {
                let counts = if domain && same_counters(&old, rule) {
                    Counts::Kept
                } else {
                    Counts::Anew
                };
                let (what, changes) = (What::Changed, changes(&old, rule));
                all.push(RuleDifference {
                    name,
                    what,
                    counts,
                    changes,
                });
            }
            Some(_) => {}
        }
    }
    for rule in &before.rules {
        if named(&after.rules, &rule.name).is_none() {
            let (what, counts, changes) = (What::Removed, Counts::GivenUp, Vec::new());
            let name = rule.name.clone();
            all.push(RuleDifference {
                name,
                what,
                counts,
                changes,
            });
        }
    }
    all
}

/// Whether a rule's counters are those of another of its name: what goes into a
/// counter's name, the domain aside.
fn same_counters(old: &Rule, new: &Rule) -> bool {
    old.key == new.key
        && old.quota.window == new.quota.window
        && old.quota.algorithm == new.quota.algorithm
}

fn changes(old: &Rule, new: &Rule) -> Vec<Change> {
    let (old, new) = (fields(old), fields(new));
    let mut changes = Vec::new();
    for (field, from) in &old {
        let to = new
            .iter()
            .find(|(other, _)| other == field)
            .map(|(_, to)| to.clone());
        if to.as_ref() != Some(from) {
            let (field, from) = (field.clone(), Some(from.clone()));
            changes.push(Change { field, from, to });
        }
    }
    for (field, to) in new {
        if !old.iter().any(|(other, _)| *other == field) {
            let (from, to) = (None, Some(to));
            changes.push(Change { field, from, to });
        }
    }
    changes
}

/// The fields of a rule in words, defaults written out.
fn fields(rule: &Rule) -> Vec<(String, String)> {
    // No bound is shown, so any fleet will do.
    let fleet = Fleet {
        sources: 1,
        round_trip: Micros::ZERO,
    };
    let report = serde_json::to_value(RuleReport::of(rule, fleet));
    let Ok(Value::Object(report)) = report else {
        return Vec::new();
    };
    let fields = report
        .into_iter()
        .filter(|(name, _)| !WORKED_OUT.contains(&&**name));
    fields.map(|(name, value)| (name, text(&value))).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".into(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn table(difference: &Difference) -> String {
    let mut out = format!("{} -> {}\n", difference.old, difference.new);
    for change in &difference.changes {
        let _ = writeln!(out, "\n~ {}", line(change));
    }
    for rule in &difference.rules {
        let sign = match rule.what {
            What::Added => '+',
            What::Removed => '-',
            What::Changed => '~',
        };
        let counts = match (rule.what, rule.counts) {
            (What::Added, _) => "new, counts from nothing",
            (_, Counts::Kept) => "counts go on",
            (_, Counts::Anew) => "counts start anew",
            (_, Counts::GivenUp) => "gone, counts are given up",
        };
        let _ = writeln!(out, "\n{sign} {}: {counts}", rule.name);
        for change in &rule.changes {
            let _ = writeln!(out, "    {}", line(change));
        }
    }
    let count = match difference.unchanged {
        1 => "1 rule is".into(),
        count => format!("{count} rules are"),
    };
    let _ = writeln!(out, "\n{count} as before");
    out
}

fn line(change: &Change) -> String {
    let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    format!(
        "{}: {} -> {}",
        change.field,
        said(&change.from),
        said(&change.to)
    )
}
