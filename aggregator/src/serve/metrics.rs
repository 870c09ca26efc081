//! What is counted about the service itself, for Prometheus.

use std::{sync::atomic::AtomicU64, time::Duration};

use limiter::{
    counter::{AddError, Added},
    key::RuleId,
    ledger::Ledger,
    rule::Rule,
    ruleset::RuleSet,
    wire::{SyncReply, ack::Status},
};
use prometheus_client::{
    encoding::text::encode,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Metric, Registry},
};

mod cluster;
mod crush;
mod door;
mod load;
mod upstream;

mod sum;

pub(super) use self::sum::sum;
use self::{
    cluster::ClusterMetrics, crush::CrushMetrics, door::DoorMetrics, load::LoadMetrics,
    upstream::UpstreamMetrics,
};
use super::task::Origin;

type Label = [(&'static str, String); 1];

/// A rule, its tier if it is for one, and whatever else.
type RuleLabels = Vec<(&'static str, String)>;

const RETURNED: &str = "Of those, hits given back because of the response, by rule; on record";

/// Every metric of the service.
pub(super) struct Metrics {
    registry: Registry,
    batches: Family<Label, Counter>,
    deltas: Counter,
    hits: Family<RuleLabels, Counter>,
    returned: Family<RuleLabels, Counter>,
    leaked: Family<RuleLabels, Counter>,
    crush: CrushMetrics,
    checks: Family<RuleLabels, Counter>,
    adds: Adds,
    responses: Family<Label, Counter>,
    rule_changes: Family<Label, Counter>,
    snapshot_age_seconds: Gauge<f64, AtomicU64>,
    pub(super) door: DoorMetrics,
    pub(super) load: LoadMetrics,
    pub(super) upstream: UpstreamMetrics,
    pub(super) cluster: ClusterMetrics,
    pub(super) syncs: Counter,
    pub(super) refused_syncs: Counter,
    pub(super) commit_seconds: Histogram,
    pub(super) commit_failures: Counter,
    pub(super) snapshots: Counter,
    pub(super) snapshot_failures: Counter,
    pub(super) queue_depth: Gauge,
    pub(super) keys: Gauge,
    pub(super) counters: Gauge,
    pub(super) idempotency_keys: Gauge,
    pub(super) watchers: Gauge,
    pub(super) sources: Gauge,
    pub(super) connections: Gauge,
    pub(super) rules_revision: Gauge,
    pub(super) rules_refused: Counter,
    pub(super) log_bytes: Gauge,
    pub(super) log_segments: Gauge,
    pub(super) log_position: Gauge,
}

/// Registers metrics as they are made.
struct Maker(Registry);

impl Maker {
    fn of<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.with(name, help, M::default())
    }

    /// Spans of time, from a quarter of a millisecond to eight seconds.
    fn seconds(&mut self, name: &str, help: &str) -> Histogram {
        self.with(
            name,
            help,
            Histogram::new(exponential_buckets(0.000_25, 2.0, 16)),
        )
    }

    fn with<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }
}

/// Adds to counters by outcome. One is counted for each add, by the one thread
/// that all wait for: nothing is looked up.
struct Adds {
    applied: Counter,
    replayed: Counter,
    out_of_bounds: Counter,
    refused: Counter,
}

impl Adds {
    fn of(family: &Family<Label, Counter>) -> Self {
        let outcome = |name: &str| family.get_or_create_owned(&[("outcome", name.to_owned())]);
        Self {
            applied: outcome("applied"),
            replayed: outcome("replayed"),
            out_of_bounds: outcome("out_of_bounds"),
            refused: outcome("refused"),
        }
    }
}

impl Metrics {
    pub(super) fn new(region: &str) -> Self {
        let labels = [("region".into(), region.to_owned().into())];
        let registry = Registry::with_prefix_and_labels("weir", labels.into_iter());
        let m = &mut Maker(registry);
        let metrics = Self {
            batches: m.of(
                "batches",
                "Batches of counted hits from sources, by what became of them",
            ),
            deltas: m.of(
                "deltas",
                "Counts that sources reported and that were counted",
            ),
            hits: m.of(
                "hits",
                "Hits counted since the beginning, by rule; on record",
            ),
            returned: m.of("returned_hits", RETURNED),
            leaked: m.of(
                "leaked_hits",
                "Hits that sources admitted with nobody to ask, by rule; since this start",
            ),
            crush: CrushMetrics::new(m),
            checks: m.of("checks", "Requests decided here, by rule and verdict"),
            adds: Adds::of(&m.of("counter_adds", "Adds to counters, by what became of them")),
            responses: m.of("http_responses", "Answers sent, by status"),
            rule_changes: m.of(
                "rule_changes",
                "Rules put in force, by where they came from",
            ),
            snapshot_age_seconds: m.of(
                "snapshot_age_seconds",
                "Time since the last whole snapshot was begun; NaN before the first",
            ),
            door: DoorMetrics::new(m),
            load: LoadMetrics::new(m),
            upstream: UpstreamMetrics::new(m),
            cluster: ClusterMetrics::new(m),
            syncs: m.of("syncs", "Messages from sources that were answered"),
            refused_syncs: m.of("syncs_refused", "Messages from sources that meant nothing"),
            commit_seconds: m.seconds(
                "commit_seconds",
                "How long commits took, from leaving memory to being durable",
            ),
            commit_failures: m.of("commit_failures", "Commits that the disk did not take"),
            snapshots: m.of("snapshots", "Snapshots taken since this start"),
            snapshot_failures: m.of("snapshot_failures", "Snapshots given up"),
            queue_depth: m.of("queue_depth", "Requests under way in the ledger"),
            keys: m.of("keys", "Counts held"),
            counters: m.of("counters", "Counters held"),
            idempotency_keys: m.of("idempotency_keys", "Idempotency keys held"),
            watchers: m.of("watchers", "Who watches counters"),
            sources: m.of("sources", "Sources heard of lately"),
            connections: m.of("connections", "Open connections"),
            rules_revision: m.of("rules_revision", "Revision of the rules in force"),
            rules_refused: m.of(
                "rules_refused",
                "Rule files that were refused, the old rules staying",
            ),
            log_bytes: m.of(
                "log_bytes",
                "Log that a start would read after the last snapshot",
            ),
            log_segments: m.of("log_segments", "Files that the log is in"),
            log_position: m.of("log_position", "The last record that is synced"),
            registry: Registry::default(),
        };
        Self {
            registry: std::mem::take(&mut m.0),
            ..metrics
        }
    }

    /// Everything, as Prometheus reads it.
    pub(super) fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Takes note of an answered message: what became of each batch, and how
    /// many counts the counted ones told of.
    pub(super) fn count_sync(&self, deltas: &[u64], reply: &SyncReply) {
        self.syncs.inc();
        for (deltas, ack) in deltas.iter().zip(&reply.acks) {
            let status = ack.status().as_str_name().to_lowercase();
            self.batches.get_or_create(&[("status", status)]).inc();
            if ack.status() == Status::Counted {
                self.deltas.inc_by(*deltas);
            }
        }
    }

    /// Takes note of a request that was decided here.
    pub(super) fn count_check(&self, rule: &Rule, allowed: bool) {
        let verdict = if allowed { "allow" } else { "deny" };
        let mut labels = rule_labels(rule);
        labels.push(("verdict", verdict.to_owned()));
        self.checks.get_or_create(&labels).inc();
    }

    /// Takes note of an add to a counter.
    pub(super) fn count_add(&self, result: &Result<Added, AddError>) {
        let adds = &self.adds;
        let outcome = match result {
            Ok(Added { replayed: true, .. }) => &adds.replayed,
            Ok(Added { applied: true, .. }) => &adds.applied,
            Ok(_) => &adds.out_of_bounds,
            Err(_) => &adds.refused,
        };
        outcome.inc();
    }

    /// Takes note of an answer.
    pub(super) fn count_response(&self, status: u16) {
        let labels = [("status", status.to_string())];
        self.responses.get_or_create(&labels).inc();
    }

    /// Takes note of rules that were put in force.
    pub(super) fn count_rule_change(&self, origin: Origin) {
        let from = match origin {
            Origin::File => "file",
            Origin::Api => "api",
            Origin::Rollback(_) => "rollback",
        };
        let labels = [("from", from.to_owned())];
        self.rule_changes.get_or_create(&labels).inc();
    }

    /// Copies the ledger's books, which are not kept here.
    pub(super) fn set_books(&self, ledger: &Ledger) {
        let rules = ledger.rules();
        copy(&self.hits, &ledger.hits_by_rule(), rules);
        copy(&self.returned, &ledger.returned_by_rule(), rules);
        copy(&self.leaked, &ledger.leaked_by_rule(), rules);
        self.crush.set(ledger.crush());
    }

    pub(super) fn set_snapshot_age(&self, age: Option<Duration>) {
        let seconds = age.map_or(f64::NAN, |age| age.as_secs_f64());
        self.snapshot_age_seconds.set(seconds);
    }
}

fn copy(family: &Family<RuleLabels, Counter>, sums: &[(RuleId, u64)], rules: &RuleSet) {
    for (id, sum) in sums {
        let rule = rules.by_id(*id).and_then(|place| rules.rule(place));
        // One that is no longer among the rules has nothing but its number.
        let labels = rule.map_or_else(|| vec![("rule", format!("{id:?}"))], rule_labels);
        let counter = family.get_or_create_owned(&labels);
        raise(&counter, *sum);
    }
}

fn raise(counter: &Counter, sum: u64) {
    counter.inc_by(sum.saturating_sub(counter.get()));
}

/// The rule's name, and its tier if it is for one.
fn rule_labels(rule: &Rule) -> RuleLabels {
    let tier = rule.tier.as_ref().map(|tier| ("tier", tier.clone()));
    let name = ("rule", rule.name.clone());
    std::iter::once(name).chain(tier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_says_what_it_is() {
        let text = Metrics::new("eu").encode();
        let helps = text
            .lines()
            .filter(|line| line.starts_with("# HELP"))
            .count();
        let types = text
            .lines()
            .filter(|line| line.starts_with("# TYPE"))
            .count();
        assert!(types > 10 && helps == types, "{text}");
        assert!(text.contains("weir_keys{region=\"eu\"} 0"), "{text}");
    }
}
