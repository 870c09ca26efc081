//! Metrics of several groups as one page: what has the same name and labels is added up.
//!
//! Each group has metrics of its own, which end with it. A page of text is added to
//! another, so that whatever is counted of a group is there.

use std::collections::HashMap;

/// Metrics of which the greatest counts, not the sum.
const GREATEST: [&str; 11] = [
    "weir_build_info",
    "weir_clock_ahead_seconds",
    "weir_source_silence_seconds",
    "weir_rules_revision",
    "weir_sources",
    "weir_snapshot_age_seconds",
    "weir_log_position",
    "weir_upstream_reachable",
    "weir_upstream_last_answer_age_seconds",
    "weir_upstream_round_trip_seconds",
    "weir_upstream_clock_ahead_seconds",
];

/// What stands under one name, in the order it came.
#[derive(Default)]
struct Family<'a> {
    head: Vec<&'a str>,
    series: Vec<(&'a str, f64)>,
}

/// All of several pages.
#[derive(Default)]
struct Pages<'a> {
    families: Vec<Family<'a>>,
    /// Where each family is, by name.
    places: HashMap<&'a str, usize>,
    /// Where each of its values is, by its name with labels.
    known: HashMap<&'a str, (usize, usize)>,
}

/// `page` with the values of the same metrics in `others` added, and those that only
/// they have.
pub(in crate::serve) fn sum(page: &str, others: &[String]) -> String {
    let mut pages = Pages::default();
    pages.add(page);
    for other in others {
        pages.add(other);
    }
    pages.to_text()
}

impl<'a> Pages<'a> {
    fn add(&mut self, page: &'a str) {
        let mut place = 0;
        let mut new = false;
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let name = rest.split(' ').next().unwrap_or_default();
                let next = self.families.len();
                place = *self.places.entry(name).or_insert(next);
                new = place == next;
                if new {
                    self.families.push(Family::default());
                }
            }
            let Some(family) = self.families.get_mut(place) else {
                continue;
            };
            match parse(line) {
                Some((series, value)) => match self.known.get(series) {
                    Some(known) => self.put_together(*known, value),
                    None => {
                        self.known.insert(series, (place, family.series.len()));
                        family.series.push((series, value));
                    }
                },
                None if new && line != "# EOF" => family.head.push(line),
                None => {}
            }
        }
    }

    fn put_together(&mut self, (family, place): (usize, usize), other: f64) {
        let family = self.families.get_mut(family);
        let Some((series, value)) = family.and_then(|family| family.series.get_mut(place)) else {
            return;
        };
        let metric = series.split('{').next().unwrap_or_default();
        *value = match GREATEST.contains(&metric) {
            // Of a number and none, it is the number.
            true => value.max(other),
            false => *value + other,
        };
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for family in &self.families {
            for line in &family.head {
                text.push_str(line);
                text.push('\n');
            }
            for (series, value) in &family.series {
                text.push_str(series);
                let value = match value.is_nan() {
                    true => " NaN\n".to_owned(),
                    false => format!(" {value}\n"),
                };
                text.push_str(&value);
            }
        }
        text.push_str("# EOF\n");
        text
    }
}

/// A line's name with its labels, and its value; none of a comment.
fn parse(line: &str) -> Option<(&str, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.rsplit_once(' ')?;
    Some((series, value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_same_name_and_labels_is_added_up_and_stands_in_its_family() {
        let page = "# HELP weir_keys k\n# TYPE weir_keys gauge\nweir_keys{r=\"e\"} 0\n\
            # HELP weir_rules_revision r\nweir_rules_revision 2\n# EOF\n";
        let group = |hits| {
            format!(
                "# HELP weir_hits h\n# TYPE weir_hits counter\n\
                weir_hits_total{{rule=\"a b\"}} {hits}\n# HELP weir_keys k\n\
                # TYPE weir_keys gauge\nweir_keys{{r=\"e\"}} 2\n\
                # HELP weir_rules_revision r\nweir_rules_revision 3\n# EOF\n"
            )
        };
        assert_eq!(
            sum(page, &[group(5), group(6)]),
            "# HELP weir_keys k\n# TYPE weir_keys gauge\nweir_keys{r=\"e\"} 4\n\
            # HELP weir_rules_revision r\nweir_rules_revision 3\n\
            # HELP weir_hits h\n# TYPE weir_hits counter\nweir_hits_total{rule=\"a b\"} 11\n\
            # EOF\n"
        );
    }
}
