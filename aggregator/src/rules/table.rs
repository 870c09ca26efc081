//! Rules as a table.

use super::{
    cost::CostSaid,
    report::{Limit, RuleReport, RulesReport},
};

/// A column: its heading, and what stands in it.
type Column = (&'static str, Cell);
type Cell = fn(&RuleReport) -> String;

const COLUMNS: [Column; 14] = [
    ("NAME", name),
    ("LIMIT", limit),
    ("ALGORITHM", algorithm),
    ("KEY", |rule| or_dash(rule.key.join(" "))),
    ("SCOPE", |rule| rule.scope.into()),
    ("KEPT", kept),
    ("AT MOST", bound),
    ("OVER", |rule| format!("+{}", rule.bound.over)),
    ("ASKS", |rule| format!("{:.0}%", rule.asks_percent)),
    ("HELD", |rule| format!("{:.0}%", rule.held_percent)),
    ("ALONE", alone),
    ("HOLD", |rule| rule.hold.clone()),
    ("DENIED", denied),
    ("MATCH", |rule| or_dash(rule.r#match.join(", "))),
];

/// A table of rules, a line for each, under a line that counts them.
pub(super) fn table(report: &RulesReport) -> String {
    let mut rows = vec![COLUMNS.map(|(heading, _)| heading.to_owned())];
    rows.extend(
        report
            .rules
            .iter()
            .map(|rule| COLUMNS.map(|(heading, cell)| said(rule, heading, cell))),
    );
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| width(&rows, column))
        .collect();
    let lines = rows.iter().map(|row| line(row, &widths));
    let warnings = report.rules.iter().filter_map(warning);
    std::iter::once(summary(report))
        .chain(lines)
        .chain(warnings)
        .collect()
}

fn warning(rule: &RuleReport) -> Option<String> {
    let warning = rule.warning.as_ref()?;
    Some(format!("\nwarning: {}: {warning}\n", name(rule)))
}

/// What is said of a rule without a limit: only what it would apply to.
const SAID_OF_UNLIMITED: [&str; 4] = ["NAME", "LIMIT", "KEY", "MATCH"];

fn said(rule: &RuleReport, heading: &str, cell: Cell) -> String {
    match rule.limit {
        Limit::None(_) if !SAID_OF_UNLIMITED.contains(&heading) => "-".into(),
        _ => cell(rule),
    }
}

fn name(rule: &RuleReport) -> String {
    match &rule.tier {
        Some(tier) => format!("{}@{tier}", rule.name),
        None => rule.name.clone(),
    }
}

fn summary(report: &RulesReport) -> String {
    let count = match report.rules.len() {
        1 => "1 rule".into(),
        count => format!("{count} rules"),
    };
    let proxies = match &*report.trusted_proxies.join(" ") {
        "" => "trusts no proxy".to_owned(),
        proxies => format!("trusts {proxies}"),
    };
    format!(
        "{}: {count}, {proxies}\nfor {} sources, {} from the region\n\n",
        report.domain, report.sources, report.round_trip
    )
}

fn width(rows: &[[String; COLUMNS.len()]], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column));
    cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths);
    let padded: Vec<String> = cells
        .map(|(cell, width)| format!("{cell:<width$}"))
        .collect();
    format!("{}\n", padded.join("  ").trim_end())
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".into() } else { text }
}

fn limit(rule: &RuleReport) -> String {
    if let Limit::None(word) = rule.limit {
        return word.into();
    }
    let cost = match &rule.cost {
        CostSaid::Hits(1) => String::new(),
        CostSaid::Hits(cost) => format!(", {cost} each"),
        CostSaid::Words(words) => format!(", {words}"),
    };
    let refund = match &*rule.refund {
        [] => String::new(),
        statuses => format!(", none for {}", statuses.join(" ")),
    };
    format!("{}/{}{cost}{refund}", rule.limit, rule.window)
}

fn algorithm(rule: &RuleReport) -> String {
    match rule.burst {
        Some(burst) => format!("{}, burst {burst}", rule.algorithm),
        None => rule.algorithm.into(),
    }
}

fn bound(rule: &RuleReport) -> String {
    let each = if rule.bound.per_source {
        " a source"
    } else {
        ""
    };
    format!("{}{each}", rule.bound.hits)
}

/// What a source does when the region is away.
fn alone(rule: &RuleReport) -> String {
    let cap = rule.local_cap;
    match (rule.no_lease, rule.lease_expired) {
        ("deny", "deny") => "deny".into(),
        ("allow", "allow") => format!("allow {cap}"),
        ("deny", _) => format!("allow {cap} once lent"),
        _ => format!("allow {cap} if never lent"),
    }
}

fn kept(rule: &RuleReport) -> String {
    match rule.commit {
        "fast" => format!("{}, checks fast", rule.consistency),
        _ => rule.consistency.to_owned(),
    }
}

fn denied(rule: &RuleReport) -> String {
    let mut said = vec![rule.action.to_owned()];
    if rule.count_denied {
        said.push("counted".into());
    }
    if rule.penalty != "0s" {
        said.push(format!("for {}", rule.penalty));
    }
    said.join(", ")
}
