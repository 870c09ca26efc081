//! Reading `/metrics` and `/stats/prometheus`: the sum of the samples of one name
//! whose labels match.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::http;

/// Samples read at one moment.
#[derive(Debug, Clone)]
pub struct Samples(String);

impl Samples {
    /// Reads them from `path` at `address`; none if nobody answers 200 there.
    #[must_use]
    pub fn fetch(address: SocketAddr, path: &str) -> Option<Self> {
        let response = http::send(address, &http::get(path, &[])).ok()?;
        (response.status == 200).then(|| Self(response.text()))
    }

    /// Reads them from a text.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The sum over all samples called `name` that carry every one of `labels`;
    /// none if there is no such sample.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{v}\"")).collect();
        let mut matching = self
            .0
            .lines()
            .filter_map(|line| value(line, name, &wanted))
            .peekable();
        matching.peek()?;
        Some(matching.sum())
    }

    /// As [`Samples::sum`], with nothing counted as zero.
    #[must_use]
    pub fn sum_or_zero(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.sum(name, labels).unwrap_or(0.0)
    }

    /// The sums of the samples called `name`, by their value of a label, in whole
    /// numbers; those of zero are left out.
    #[must_use]
    pub fn by(&self, name: &str, label: &str) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for line in self.0.lines().filter(|line| line.starts_with(name)) {
            let start = format!("{label}=\"");
            let Some((_, rest)) = line.split_once(&start) else {
                continue;
            };
            let (Some(of), Some(value)) = (rest.split('"').next(), value(line, name, &[])) else {
                continue;
            };
            if value > 0.0 {
                *sums.entry(of.to_owned()).or_default() += whole(value);
            }
        }
        sums
    }

    /// All of it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The lines that mention `part`: for a failing test's message.
    #[must_use]
    pub fn lines_with(&self, part: &str) -> Vec<&str> {
        self.0.lines().filter(|line| line.contains(part)).collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters are whole and small"
)]
fn whole(count: f64) -> u64 {
    count.round() as u64
}

fn value(line: &str, name: &str, wanted: &[String]) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => rest.rsplit_once('}')?,
        None if rest.starts_with(' ') => ("", rest),
        None => return None,
    };
    let present = |pair: &String| labels.split(',').any(|label| label == pair);
    if !wanted.iter().all(present) {
        return None;
    }
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE weir_decisions counter\n\
        weir_decisions{rule=\"a\",verdict=\"deny\"} 3\n\
        weir_decisions{rule=\"b\",verdict=\"deny\"} 4\n\
        weir_decisions{rule=\"a\",verdict=\"allow\"} 10\n\
        weir_decisions_total 99\n\
        plain 7\n";

    #[test]
    fn samples_of_one_name_add_up_over_the_labels_left_open() {
        let samples = Samples::from_text(TEXT);
        assert_eq!(
            samples.sum("weir_decisions", &[("verdict", "deny")]),
            Some(7.0)
        );
        assert_eq!(
            samples.sum("weir_decisions", &[("rule", "a"), ("verdict", "allow")]),
            Some(10.0)
        );
        assert_eq!(samples.sum("plain", &[]), Some(7.0));
    }

    #[test]
    fn a_name_that_only_begins_alike_is_another() {
        assert_eq!(Samples::from_text(TEXT).sum("weir_deci", &[]), None);
    }
}
