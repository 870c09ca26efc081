//! Metrics of several groups as one page: what has the same name and labels is added up.
//!
//! Each group has metrics of its own, which end with it. A page of text is added to
//! another, so that whatever is counted of a group is there.

use std::collections::{HashMap, HashSet};

/// Metrics of which the greatest counts, not the sum.
const GREATEST: [&str; 8] = [
    "weir_rules_revision",
    "weir_sources",
    "weir_snapshot_age_seconds",
    "weir_log_position",
    "weir_upstream_reachable",
    "weir_upstream_last_answer_age_seconds",
    "weir_upstream_round_trip_seconds",
    "weir_upstream_clock_ahead_seconds",
];

/// `page` with the values of the same metrics in `others` added.
pub(in crate::serve) fn sum(page: &str, others: &[String]) -> String {
    let mut values: HashMap<&str, f64> = HashMap::new();
    let mut of_metric: HashMap<&str, Vec<&str>> = HashMap::new();
    for (series, value) in others.iter().flat_map(|other| series(other)) {
        let known = values.entry(series).or_insert_with(|| {
            of_metric.entry(metric(series)).or_default().push(series);
            0.0
        });
        *known = put_together(metric(series), *known, value);
    }
    let mut told: HashSet<&str> = HashSet::new();
    let mut sum = String::new();
    let mut family = "";
    let end = |sum: &mut String, told: &HashSet<&str>, family: &str| {
        // Those that only groups have.
        let mut missing: Vec<_> = of_metric
            .iter()
            .filter(|(name, _)| belongs(name, family))
            .flat_map(|(_, series)| series)
            .filter(|series| !told.contains(**series))
            .collect();
        missing.sort_unstable();
        for series in missing {
            line(sum, series, values.get(series).copied().unwrap_or(0.0));
        }
    };
    for text in page.lines() {
        if let Some(rest) = text.strip_prefix("# HELP ") {
            end(&mut sum, &told, family);
            family = rest.split(' ').next().unwrap_or_default();
        } else if text == "# EOF" {
            end(&mut sum, &told, family);
        }
        match parse(text) {
            Some((series, value)) => {
                told.insert(series);
                let other = values.get(series).copied().unwrap_or(0.0);
                line(&mut sum, series, put_together(metric(series), value, other));
            }
            None => {
                sum.push_str(text);
                sum.push('\n');
            }
        }
    }
    sum
}

/// Whether a metric is of a family: it has the family's name, and perhaps an ending.
fn belongs(metric: &str, family: &str) -> bool {
    let endings = ["", "_total", "_sum", "_count", "_bucket"];
    let ending = metric.strip_prefix(family);
    !family.is_empty() && ending.is_some_and(|ending| endings.contains(&ending))
}

fn put_together(metric: &str, one: f64, other: f64) -> f64 {
    match GREATEST.contains(&metric) {
        // Of a number and none, it is the number.
        true => one.max(other),
        false => one + other,
    }
}

fn line(sum: &mut String, series: &str, value: f64) {
    sum.push_str(series);
    sum.push(' ');
    if value.is_nan() {
        sum.push_str("NaN");
    } else {
        sum.push_str(&value.to_string());
    }
    sum.push('\n');
}

fn series(page: &str) -> impl Iterator<Item = (&str, f64)> {
    page.lines().filter_map(parse)
}

/// A line's name with its labels, and its value; none of a comment.
fn parse(line: &str) -> Option<(&str, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.rsplit_once(' ')?;
    Some((series, value.parse().ok()?))
}

fn metric(series: &str) -> &str {
    series.split('{').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_same_name_and_labels_is_added_up_and_stands_in_its_family() {
        let page = "# HELP weir_hits h\n# TYPE weir_hits counter\n\
            # HELP weir_keys k\n# TYPE weir_keys gauge\nweir_keys{r=\"e\"} 0\n\
            # HELP weir_rules_revision r\nweir_rules_revision 2\n# EOF\n";
        let group = |hits| {
            format!(
                "# HELP weir_hits h\nweir_hits_total{{rule=\"a b\"}} {hits}\n\
                weir_keys{{r=\"e\"}} 2\nweir_rules_revision 3\n# EOF\n"
            )
        };
        let text = sum(page, &[group(5), group(6)]);
        assert_eq!(
            text,
            "# HELP weir_hits h\n# TYPE weir_hits counter\nweir_hits_total{rule=\"a b\"} 11\n\
            # HELP weir_keys k\n# TYPE weir_keys gauge\nweir_keys{r=\"e\"} 4\n\
            # HELP weir_rules_revision r\nweir_rules_revision 3\n# EOF\n"
        );
    }
}
