//! Alerts, recorded rules and the dashboard: every expression is one, every metric in
//! it is one that a service or a filter has, and the runbook knows of each alert.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use promql_parser::parser::{self, Expr};
use promql_parser::util::{ExprVisitor, walk_expr};
use serde_json::Value;
use weir_tests::aggregator::Aggregator;
use weir_tests::filter_metrics;
use weir_tests::http;
use weir_tests::light::Traffic;
use weir_tests::site::Site;
use weir_tests::wait::wait_until;

use crate::files::{list, string, text, yaml};

/// What Prometheus itself has of whatever it asks.
const PROMETHEUS: &[&str] = &["up"];

const RULES: &str = "version: 1\ndomain: a\nrules:\n  - { name: a, limit: 1000, window: 1m }\n";

struct Names(BTreeSet<String>);

impl ExprVisitor for Names {
    type Error = Infallible;

    fn pre_visit(&mut self, expr: &Expr) -> Result<bool, Infallible> {
        let name = match expr {
            Expr::VectorSelector(selector) => selector.name.clone(),
            Expr::MatrixSelector(selector) => selector.vs.name.clone(),
            _ => None,
        };
        self.0.extend(name);
        Ok(true)
    }
}

/// The metrics that an expression asks for.
fn names(expr: &str) -> BTreeSet<String> {
    let parsed = parser::parse(expr).unwrap_or_else(|error| panic!("{expr}: {error}"));
    let mut names = Names(BTreeSet::new());
    let Ok(_) = walk_expr(&mut names, &parsed);
    assert!(!names.0.is_empty(), "{expr} asks for nothing");
    names.0
}

fn rules(file: &str) -> Vec<Value> {
    let groups = yaml(file)["groups"].clone();
    list(&groups)
        .flat_map(|group| list(&group["rules"]).cloned())
        .collect()
}

fn alerts() -> Vec<Value> {
    rules("prometheus/alerts.yaml")
}

/// Each expression, and where it stands.
fn expressions() -> Vec<(String, String)> {
    let of = |name: &str, rule: &Value| {
        (
            string(&rule[name]).to_owned(),
            string(&rule["expr"]).to_owned(),
        )
    };
    let mut found: Vec<_> = alerts().iter().map(|rule| of("alert", rule)).collect();
    found.extend(
        rules("prometheus/rules.yaml")
            .iter()
            .map(|rule| of("record", rule)),
    );
    let board: Value = serde_json::from_str(&text("grafana/weir.json")).expect("JSON");
    for panel in list(&board["panels"]) {
        for target in list(&panel["targets"]) {
            found.push((
                string(&panel["title"]).to_owned(),
                string(&target["expr"]).to_owned(),
            ));
        }
    }
    found
}

/// A service to which everything has happened that is counted by kind: there is no
/// metric of what never happened.
fn eventful() -> Site {
    let traffic = Traffic {
        keys: vec!["a".to_owned()],
        per_second: 50,
    };
    let aggregator = Aggregator::start(RULES);
    let site = Site::before(aggregator, Duration::ZERO, 1, &traffic);
    site.link.fall_silent();
    wait_until("something leaks", || site.sums().leaked > 0);
    site.link.heal();
    site.settle();
    let from_elsewhere = http::get("/metrics", &[("origin", "http://elsewhere.example")]);
    let refused = http::send(site.aggregator.address(), &from_elsewhere);
    assert_eq!(refused.expect("an answer").status, 403);
    site
}

/// Everything that a service says it counts.
fn exposed() -> BTreeSet<String> {
    let metrics = eventful().aggregator.metrics().expect("metrics");
    let text = metrics.text();
    let mut names = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let mut words = line.split(' ');
        let (name, kind) = (words.next().expect("a name"), words.next().expect("a kind"));
        let ends: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        names.extend(ends.iter().map(|end| format!("{name}{end}")));
    }
    names
}

#[test]
fn every_metric_that_is_asked_for_is_one_that_there_is() {
    let mut known = exposed();
    known.extend(filter_metrics::NAMES.iter().map(|name| (*name).to_owned()));
    known.extend(PROMETHEUS.iter().map(|name| (*name).to_owned()));
    let recorded = rules("prometheus/rules.yaml");
    known.extend(
        recorded
            .iter()
            .map(|rule| string(&rule["record"]).to_owned()),
    );
    for (place, expr) in expressions() {
        for name in names(&expr) {
            assert!(
                known.contains(&name),
                "{place} asks for {name}, which nobody has"
            );
        }
    }
}

#[test]
#[should_panic(expected = "rate(a)")]
fn an_expression_that_is_none_is_found() {
    names("rate(a)");
}

#[test]
fn every_alert_says_how_bad_it_is_and_the_runbook_knows_it() {
    let runbook = text("RUNBOOK.md");
    let headings: BTreeSet<&str> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let mut known = BTreeSet::new();
    for alert in alerts() {
        let name = string(&alert["alert"]).to_owned();
        let severity = string(&alert["labels"]["severity"]);
        assert!(
            ["critical", "warning"].contains(&severity),
            "{name}: {severity}"
        );
        let said = &alert["annotations"];
        assert!(
            said["summary"].is_string() && said["description"].is_string(),
            "{name}"
        );
        let anchor = format!("deploy/RUNBOOK.md#{}", name.to_lowercase());
        assert_eq!(string(&said["runbook"]), anchor);
        assert!(
            headings.contains(name.as_str()),
            "RUNBOOK.md has no `### {name}`"
        );
        assert!(known.insert(name.clone()), "{name} is there twice");
    }
    for heading in headings
        .iter()
        .filter(|heading| heading.starts_with("Weir"))
    {
        assert!(
            known.contains(*heading),
            "RUNBOOK.md tells of {heading}, which is no alert"
        );
    }
}

#[test]
fn prometheus_reads_the_files_that_are_there() {
    for name in [
        "prometheus/prometheus.yaml",
        "compose/one-region.prometheus.yaml",
    ] {
        let read = yaml(name);
        for file in list(&read["rule_files"]) {
            let file = string(file).trim_start_matches("/etc/prometheus/");
            assert!(
                crate::files::path("prometheus").join(file).exists(),
                "{name}: {file}"
            );
        }
        assert!(list(&read["scrape_configs"]).any(|job| job["job_name"] == "weir"));
    }
}
