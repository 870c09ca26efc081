//! The fidelity report: of each rule of the source, what became of it.
//!
//! A rule is *exact* if it decides as the source does, *approximated* if it does
//! so in part, with the difference said, and *dropped* if it is not enforced at
//! all. What is no part of deciding, as the name of a metric, is noted and costs
//! nothing.

use std::fmt::Write;

use limiter::{
    rule::{Action, Rule},
    time::Micros,
};
use serde::Serialize;

use crate::rules::{
    CostSaid,
    at::At,
    conditions,
    diagnostic::Place,
    key,
    numbers::{Per, Written},
    response, words,
};

/// How much of a rule was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// It decides as the source does.
    Exact,
    /// It decides otherwise in a way that is said.
    Approximated,
    /// It, or a part of it, is not enforced.
    Dropped,
}

/// One thing to know about a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// What it costs.
    pub fidelity: Fidelity,
    /// What it is.
    pub text: String,
}

/// A rule of the source, and the rule it became.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Draft {
    /// Its path in the source.
    pub(in crate::rules) source: String,
    pub(in crate::rules) place: Place,
    /// What it is called, also if nothing became of it.
    pub(in crate::rules) name: String,
    /// None if there is nothing to enforce, or nothing that could be.
    pub(in crate::rules) rule: Option<Rule>,
    pub(in crate::rules) notes: Vec<Note>,
}

impl Draft {
    pub(super) fn new(at: &At<'_>, name: impl Into<String>) -> Self {
        Self {
            source: at.path.clone(),
            place: at.node.place,
            name: name.into(),
            rule: None,
            notes: Vec::new(),
        }
    }

    fn note(&mut self, fidelity: Fidelity, text: impl Into<String>) {
        let text = text.into();
        let note = Note { fidelity, text };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Notes what costs nothing.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.note(Fidelity::Exact, text);
    }

    /// Notes what is not quite as in the source, and how it is instead.
    pub(super) fn approximate(&mut self, text: impl Into<String>) {
        self.note(Fidelity::Approximated, text);
    }

    /// Notes what is not enforced, and why.
    pub(super) fn drop(&mut self, text: impl Into<String>) {
        self.note(Fidelity::Dropped, text);
    }

    /// Notes why nothing became of it.
    pub(super) fn refuse(&mut self, text: impl Into<String>) {
        self.rule = None;
        // How a rule that is not there differs helps nobody.
        self.notes.retain(|note| note.fidelity == Fidelity::Dropped);
        self.drop(text);
    }

    /// How much of it was kept. A rule that is enforced in part is approximated.
    pub(in crate::rules) fn fidelity(&self) -> Fidelity {
        let worst = self.notes.iter().map(|note| note.fidelity).max();
        match worst.unwrap_or(Fidelity::Exact) {
            Fidelity::Exact => Fidelity::Exact,
            _ if self.rule.is_some() => Fidelity::Approximated,
            _ => Fidelity::Dropped,
        }
    }
}

/// What became of a source.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The source's format.
    pub from: &'static str,
    /// The source's file.
    pub file: String,
    /// Whether the rules decide as the source does, all that is assumed granted.
    pub exact: bool,
    /// Its rules, in their order.
    pub rules: Vec<RuleImport>,
    /// What the source does not say and the rules take for granted.
    pub assumed: Vec<String>,
}

/// What became of a rule.
#[derive(Clone, Debug, Serialize)]
pub struct RuleImport {
    /// The rule it became; none if none did.
    pub rule: Option<String>,
    /// What it is called, and where it stands in the source.
    pub source: String,
    /// Where that is.
    #[serde(flatten)]
    pub place: Place,
    /// How much of it was kept.
    pub fidelity: Fidelity,
    /// What was kept, in short.
    pub kept: Option<String>,
    /// What else there is to know.
    pub notes: Vec<Note>,
}

impl RuleImport {
    pub(super) fn of(draft: &Draft) -> Self {
        let source = match &*draft.source {
            "" => draft.name.clone(),
            path => format!("{path} ({})", draft.name),
        };
        Self {
            rule: draft.rule.as_ref().map(|rule| rule.name.clone()),
            source,
            place: draft.place,
            fidelity: draft.fidelity(),
            kept: draft.rule.as_ref().map(kept),
            notes: draft.notes.clone(),
        }
    }
}

/// A rule in one line.
fn kept(rule: &Rule) -> String {
    let quota = &rule.quota;
    let algorithm = words::name(words::ALGORITHM, &quota.algorithm);
    let mut text = match rule.unlimited {
        true => "unlimited".to_owned(),
        false => format!("{} per {}, {algorithm}", quota.limit, Per(quota.window)),
    };
    let parts: Vec<_> = rule
        .key
        .iter()
        .map(|part| key::Written(part).to_string())
        .collect();
    if !parts.is_empty() {
        let _ = write!(text, ", for each {}", parts.join(", "));
    }
    match CostSaid::of(&rule.cost) {
        CostSaid::Hits(1) => {}
        CostSaid::Hits(cost) => {
            let _ = write!(text, ", {cost} a request");
        }
        CostSaid::Words(words) => {
            let _ = write!(text, ", a request spends {words}");
        }
    }
    if rule.penalty > Micros::ZERO {
        let _ = write!(text, ", then denied for {}", Written(rule.penalty));
    }
    if rule.action == Action::Shadow {
        text.push_str(", only watched");
    }
    if let Some(answer) = &rule.response {
        let _ = write!(text, ", answered ({})", response::words(answer));
    }
    let conditions = rule.conditions.iter();
    let conditions: Vec<_> = conditions
        .map(|one| conditions::Written(one).to_string())
        .collect();
    if !conditions.is_empty() {
        let _ = write!(text, ", if {}", conditions.join(" and "));
    }
    text
}

impl Fidelity {
    pub(in crate::rules) const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Approximated => "approximated",
            Self::Dropped => "dropped",
        }
    }
}

impl Note {
    /// As a line of the report, or of a comment.
    pub(in crate::rules) fn line(&self) -> String {
        match self.fidelity {
            Fidelity::Exact => format!("note: {}", self.text),
            costly => format!("{}: {}", costly.word(), self.text),
        }
    }
}

impl Report {
    /// For people.
    pub(super) fn table(&self) -> String {
        let count = |fidelity| {
            self.rules
                .iter()
                .filter(|rule| rule.fidelity == fidelity)
                .count()
        };
        let mut out = format!(
            "{}, {}: {} exact, {} approximated, {} dropped\n",
            self.file,
            self.from,
            count(Fidelity::Exact),
            count(Fidelity::Approximated),
            count(Fidelity::Dropped),
        );
        for rule in &self.rules {
            let Place { line, column } = rule.place;
            let name = rule.rule.as_deref().unwrap_or("(no rule)");
            let _ = writeln!(out, "\n{:<13} {name}", rule.fidelity.word());
            let _ = writeln!(
                out,
                "    from: {}:{line}:{column}: {}",
                self.file, rule.source
            );
            if let Some(kept) = &rule.kept {
                let _ = writeln!(out, "    kept: {kept}");
            }
            for note in &rule.notes {
                let _ = writeln!(out, "    {}", note.line());
            }
        }
        if !self.assumed.is_empty() {
            out.push_str("\ntaken for granted:\n");
        }
        for assumed in &self.assumed {
            let _ = writeln!(out, "  - {assumed}");
        }
        out
    }

    /// For programs.
    pub(super) fn json(&self) -> String {
        // Texts and numbers only: nothing that JSON cannot say.
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{text}\n")
    }
}
