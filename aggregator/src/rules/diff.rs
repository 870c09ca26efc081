//! `weir rules diff`: what a change of rules changes, and which counts go on.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
    path::Path,
    sync::Arc,
};

use limiter::{bound::Fleet, list::List, rule::Rule};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{check::Format, diagnostic::Problems, file::RuleFile, report::RuleReport};

/// What of a rule's report is not the rule, or is its identity.
const WORKED_OUT: &[&str] = &["name", "tier", "bound", "asks_percent", "held_percent"];

/// What a change of rules comes to.
#[derive(Debug, Deserialize, Serialize)]
pub struct Difference {
    /// Of the file itself.
    changes: Vec<Change>,
    rules: Vec<RuleDifference>,
    /// How many rules are as they were.
    unchanged: usize,
}

/// The same, between two files.
#[derive(Serialize)]
struct Named<'a> {
    old: &'a str,
    new: &'a str,
    #[serde(flatten)]
    difference: Difference,
}

#[derive(Debug, Deserialize, Serialize)]
struct RuleDifference {
    name: String,
    what: What,
    /// Whether what was counted still counts.
    counts: Counts,
    changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Added,
    Removed,
    Changed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Counts {
    /// They go on.
    Kept,
    /// They start anew.
    Anew,
    /// They are given up.
    GivenUp,
}

#[derive(Debug, Deserialize, Serialize)]
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

fn say((old, new): (&str, &str), before: &RuleFile, after: &RuleFile, format: Format) -> String {
    let difference = Difference::between(before, after);
    match format {
        Format::Table => format!("{old} -> {new}\n{}", difference.table()),
        Format::Json => {
            let named = Named {
                old,
                new,
                difference,
            };
            // Texts and numbers only: nothing that JSON cannot say.
            serde_json::to_string_pretty(&named).unwrap_or_default() + "\n"
        }
    }
}

impl Difference {
    /// Compares the rules as they are with what they are to be.
    pub fn between(before: &RuleFile, after: &RuleFile) -> Self {
        let rules = rules(before, after);
        let touched = |rule: &&RuleDifference| rule.what != What::Removed;
        Self {
            changes: file_changes(before, after),
            unchanged: after.rules.len() - rules.iter().filter(touched).count(),
            rules,
        }
    }

    /// It as a table, which ends with a line end.
    pub fn table(&self) -> String {
        table(self)
    }

    /// It in one line.
    pub fn summary(&self) -> String {
        let count = |what| self.rules.iter().filter(|rule| rule.what == what).count();
        let anew =
            |rule: &&RuleDifference| rule.what == What::Changed && rule.counts == Counts::Anew;
        let parts = [
            (count(What::Added), "added"),
            (count(What::Removed), "removed"),
            (count(What::Changed), "changed"),
            (self.rules.iter().filter(anew).count(), "counting anew"),
        ];
        let mut said: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let fields = self
            .changes
            .iter()
            .map(|change| format!("other {}", change.field));
        said.extend(fields);
        match said.is_empty() {
            true => "no rule changed".into(),
            false => said.join(", "),
        }
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
    let lists = list_changes(before, after);
    changed.map(change).chain(lists).collect()
}

/// Lists that hold something else, come, or go.
fn list_changes(before: &RuleFile, after: &RuleFile) -> Vec<Change> {
    let (old, new) = (lists(before), lists(after));
    let size = |list: &&Arc<List>| format!("{} listed", list.len());
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let changed = names.into_iter().filter_map(|name| {
        let (from, to) = (old.get(name), new.get(name));
        let same_size = from.map(size) == to.map(size);
        (from != to).then(|| Change {
            field: format!("list {name}"),
            from: from.map(size),
            to: to.map(size).map(|to| match same_size {
                true => to + ", others",
                false => to,
            }),
        })
    });
    changed.collect()
}

/// The lists that rules look at, by their names.
fn lists(file: &RuleFile) -> BTreeMap<&str, &Arc<List>> {
    let all = file.rules.iter().flat_map(Rule::lists);
    all.map(|list| (list.name(), list)).collect()
}

fn rules(before: &RuleFile, after: &RuleFile) -> Vec<RuleDifference> {
    let by_name = |rules: &'_ [Rule]| -> HashMap<String, Rule> {
        rules
            .iter()
            .map(|rule| (rule.identity().into_owned(), rule.clone()))
            .collect()
    };
    let (old_rules, new_rules) = (by_name(&before.rules), by_name(&after.rules));
    let domain = before.domain == after.domain;
    let mut all = Vec::new();
    for rule in &after.rules {
        let name = rule.identity().into_owned();
        match old_rules.get(&name) {
            None => {
                let (what, counts, changes) = (What::Added, Counts::Anew, Vec::new());
                all.push(RuleDifference {
                    name,
                    what,
                    counts,
                    changes,
                });
            }
            Some(old) if old != rule || !domain => {
                let counts = if domain && same_counters(old, rule) {
                    Counts::Kept
                } else {
                    Counts::Anew
                };
                let (what, changes) = (What::Changed, changes(old, rule));
                // Only a list that it looks at has changed, which is told of the file.
                if changes.is_empty() && domain {
                    continue;
                }
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
        let name = rule.identity().into_owned();
        if !new_rules.contains_key(&name) {
            let (what, counts, changes) = (What::Removed, Counts::GivenUp, Vec::new());
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
    let report = serde_json::to_value(RuleReport::of(rule, Fleet::ONE));
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
    let mut out = String::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "version: 1
domain: d
rules:
  - { name: same, limit: 1, window: 1s }
  - { name: wider, key: ip, limit: 100, window: 1m }
  - { name: longer, key: ip, limit: 100, window: 1m, penalty: 5s }
  - { name: gone, limit: 1, window: 1s }
";
    const NEW: &str = "version: 1
domain: d
trusted_proxies: 10.0.0.0/8
rules:
  - { name: same, limit: 1, window: 1s }
  - { name: wider, key: ip, limit: 200, window: 1m, match: { paths: [ /a, /b ] } }
  - { name: longer, key: ip, limit: 100, window: 1h, penalty: 5s }
  - { name: come, limit: 1, window: 1s }
";

    fn said(old: &str, new: &str, format: Format) -> String {
        let read = |text: &str| RuleFile::parse("f", text.as_bytes()).unwrap();
        say(("old", "new"), &read(old), &read(new), format)
    }

    #[test]
    fn what_changes_is_said_field_by_field_and_whether_counts_go_on() {
        let expected = "old -> new

~ trusted_proxies: nobody -> 10.0.0.0/8

~ wider: counts go on
    limit: 100 -> 200
    local_cap: 100 -> 200
    match: - -> paths /a /b

~ longer: counts start anew
    window: 1m -> 1h

+ come: new, counts from nothing

- gone: gone, counts are given up

1 rule is as before
";
        assert_eq!(said(OLD, NEW, Format::Table), expected);
    }

    #[test]
    fn another_domain_starts_every_count_anew() {
        let new = OLD.replace("domain: d", "domain: e");
        let said: Value = serde_json::from_str(&said(OLD, &new, Format::Json)).unwrap();
        assert_eq!(said["changes"][0]["field"], "domain");
        let rules = said["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 4);
        assert!(rules.iter().all(|rule| rule["counts"] == "anew"));
        assert_eq!(said["unchanged"], 0);
    }

    #[test]
    fn counts_are_said_to_go_on_exactly_if_the_counter_keeps_its_name() {
        use limiter::key::HashSeed;
        for change in [
            "limit: 7",
            "window: 2m",
            "window: month",
            "key: host",
            "algorithm: fixed_window",
            "cost: 2",
        ] {
            let (name, _) = change.split_once(':').unwrap();
            let base = [
                "limit: 5",
                "window: 1m",
                "key: method",
                "algorithm: sliding_window",
                "cost: 1",
            ];
            let kept = base.iter().filter(|field| !field.starts_with(name));
            let mut fields: Vec<&str> = kept.copied().collect();
            let file = |fields: &[&str]| {
                format!(
                    "version: 1\ndomain: d\nrules: [ {{ name: r, {} }} ]",
                    fields.join(", ")
                )
            };
            fields.push(change);
            let (old, new) = (file(&base), file(&fields));
            let counter = |text: &str| {
                let read = RuleFile::parse("f", text.as_bytes()).unwrap();
                read.into_rule_set(1, HashSeed::default())
                    .unwrap()
                    .key_of(0, &[b"GET"])
            };
            let said: Value = serde_json::from_str(&said(&old, &new, Format::Json)).unwrap();
            let kept = said["rules"][0]["counts"] == "kept";
            assert_eq!(kept, counter(&old) == counter(&new), "{change}");
        }
    }
}
