//! What is counted, until the host is told.
//!
//! Counting costs an addition; telling the host costs a call. So counts gather
//! here and are handed over on a tick, what did not change left out. Gauges are
//! shared by all workers of a host, so each hands over differences.
//!
//! A label is part of the name, as in `weir_requests_total;rule=per-key;verdict=deny`;
//! `stats_tags` in the host's configuration makes labels of it again.

use std::collections::BTreeMap;

use limiter::edge::{RuleStats, SourceStats};
use limiter::rule::Rule;

/// A metric's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Moves by differences; all workers share it.
    Gauge,
}

/// Where metrics go.
pub trait Sink {
    /// Finds or makes the metric of this name; none if the host will not.
    fn define(&mut self, kind: Kind, name: &str) -> Option<u32>;
    /// Adds to it.
    fn add(&mut self, id: u32, by: i64);
}

/// All metrics of one source.
#[derive(Debug, Default)]
pub struct Metrics {
    counters: BTreeMap<String, Metric>,
    gauges: BTreeMap<&'static str, Gauge>,
    reported: SourceStats,
}

#[derive(Debug, Default)]
struct Metric {
    id: Option<u32>,
    /// Counted and not yet handed over.
    pending: u64,
}

#[derive(Debug, Default)]
struct Gauge {
    id: Option<u32>,
    now: i64,
    told: i64,
}

impl Metrics {
    /// Counts.
    pub fn count(&mut self, name: &str, by: u64) {
        if by == 0 {
            return;
        }
        match self.counters.get_mut(name) {
            Some(metric) => metric.pending = metric.pending.saturating_add(by),
            None => {
                let metric = Metric {
                    id: None,
                    pending: by,
                };
                self.counters.insert(name.to_owned(), metric);
            }
        }
    }

    /// Counts what a rule has decided.
    pub fn count_rule(&mut self, rule: &Rule, stats: RuleStats) {
        let tier = rule
            .tier
            .as_ref()
            .map(|tier| format!(";tier={}", label(tier)));
        let rule = label(&rule.name) + &tier.unwrap_or_default();
        for (verdict, count) in [
            ("allow", stats.allowed),
            ("deny", stats.denied),
            ("shadow_deny", stats.shadow_denied),
        ] {
            if count > 0 {
                self.count(
                    &format!("weir_requests_total;rule={rule};verdict={verdict}"),
                    count,
                );
            }
        }
        if stats.leaked > 0 {
            self.count(&format!("weir_leaked_total;rule={rule}"), stats.leaked);
        }
    }

    /// Takes in what the source holds and has done since its start.
    pub fn set_source(&mut self, stats: SourceStats) {
        let before = core::mem::replace(&mut self.reported, stats);
        for (name, now, before) in [
            ("weir_held_total", stats.held, before.held),
            ("weir_asks_total", stats.asks, before.asks),
            ("weir_deltas_total", stats.deltas, before.deltas),
            ("weir_untracked_total", stats.untracked, before.untracked),
        ] {
            self.count(name, now.saturating_sub(before));
        }
        let age = stats.last_reply_ago.map_or(0, |age| age.as_millis_ceil());
        self.set("weir_sources", 1);
        self.set("weir_keys", stats.keys);
        self.set("weir_sources_away", u64::from(stats.away));
        self.set("weir_reply_age_ms", age);
    }

    /// Takes this source's part out of every gauge: it is about to end.
    pub fn retire(&mut self) {
        for gauge in self.gauges.values_mut() {
            gauge.now = 0;
        }
    }

    /// Hands over what has changed.
    pub fn flush(&mut self, sink: &mut impl Sink) {
        for (name, metric) in &mut self.counters {
            let by = i64::try_from(metric.pending).unwrap_or(i64::MAX);
            if by > 0 && tell(sink, Kind::Counter, name, &mut metric.id, by) {
                metric.pending = 0;
            }
        }
        for (name, gauge) in &mut self.gauges {
            let by = gauge.now.saturating_sub(gauge.told);
            if by != 0 && tell(sink, Kind::Gauge, name, &mut gauge.id, by) {
                gauge.told = gauge.now;
            }
        }
    }

    fn set(&mut self, name: &'static str, value: u64) {
        self.gauges.entry(name).or_default().now = i64::try_from(value).unwrap_or(i64::MAX);
    }
}

fn tell(sink: &mut impl Sink, kind: Kind, name: &str, id: &mut Option<u32>, by: i64) -> bool {
    if id.is_none() {
        *id = sink.define(kind, name);
    }
    id.map(|id| sink.add(id, by)).is_some()
}

/// A rule's name as a label: nothing in it may end the label.
fn label(rule: &str) -> String {
    rule.chars()
        .map(|c| {
            if c.is_ascii_graphic() && !matches!(c, ';' | '=' | '"' | '\\') {
                c
            } else {
                '_'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Fake {
        names: Vec<String>,
        added: Vec<(u32, i64)>,
    }

    impl Sink for Fake {
        fn define(&mut self, _kind: Kind, name: &str) -> Option<u32> {
            self.names.push(name.to_owned());
            u32::try_from(self.names.len()).ok()
        }

        fn add(&mut self, id: u32, by: i64) {
            self.added.push((id, by));
        }
    }

    fn keys(keys: u64) -> SourceStats {
        SourceStats {
            keys,
            ..SourceStats::default()
        }
    }

    #[test]
    fn a_count_is_handed_over_once() {
        let (mut metrics, mut host) = (Metrics::default(), Fake::default());
        metrics.count("a", 2);
        metrics.count("a", 3);
        metrics.flush(&mut host);
        metrics.flush(&mut host);
        assert_eq!(host.added, [(1, 5)]);
        metrics.count("a", 1);
        metrics.flush(&mut host);
        assert_eq!(host.added, [(1, 5), (1, 1)]);
        assert_eq!(host.names, ["a"]);
    }

    #[test]
    fn a_gauge_moves_by_differences_and_ends_where_it_began() {
        let (mut metrics, mut host) = (Metrics::default(), Fake::default());
        for held in [5, 2, 2] {
            metrics.set_source(keys(held));
            metrics.flush(&mut host);
        }
        metrics.retire();
        metrics.flush(&mut host);
        let id = (1..)
            .zip(&host.names)
            .find(|(_, name)| *name == "weir_keys");
        let id = id.map(|(id, _)| id);
        let moves: Vec<i64> = host
            .added
            .iter()
            .filter(|(i, _)| Some(*i) == id)
            .map(|(_, by)| *by)
            .collect();
        assert_eq!(moves, [5, -3, -2]);
    }

    #[test]
    fn a_rule_name_cannot_forge_a_label() {
        let (mut metrics, mut host) = (Metrics::default(), Fake::default());
        let stats = RuleStats {
            denied: 1,
            ..RuleStats::default()
        };
        let mut rule = Rule::unsupported("a;verdict=allow \"é");
        metrics.count_rule(&rule, stats);
        rule.name = "a".to_owned();
        rule.tier = Some("b;c".to_owned());
        metrics.count_rule(&rule, stats);
        metrics.flush(&mut host);
        assert_eq!(
            host.names,
            [
                "weir_requests_total;rule=a;tier=b_c;verdict=deny",
                "weir_requests_total;rule=a_verdict_allow___;verdict=deny",
            ]
        );
    }
}
