//! Whether the promises held: each with its evidence, and one line for all.

use crate::tally::Window;

/// How far the fleet may stray from a limit, in percent.
const TOLERANCE: u64 = 2;

/// A promise, and whether it held.
#[derive(Debug)]
struct Finding {
    held: bool,
    text: String,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Verdict(Vec<Finding>);

impl Verdict {
    /// Notes that a promise held or did not, with the evidence.
    pub(crate) fn note(&mut self, held: bool, text: impl Into<String>) {
        let text = text.into();
        self.0.push(Finding { held, text });
    }

    /// Whether all of them held.
    pub(crate) fn holds(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|finding| finding.held)
    }

    /// One line for each, and one for all.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .0
            .iter()
            .map(|finding| {
                let word = if finding.held { "held  " } else { "BROKEN" };
                format!("  {word}  {}", finding.text)
            })
            .collect();
        let broken = self.0.iter().filter(|finding| !finding.held).count();
        lines.push(match broken {
            0 => format!("demo: all {} promises held", self.0.len()),
            _ => format!("demo: {broken} of {} promises broken", self.0.len()),
        });
        lines
    }
}

/// The tolerance in hits.
pub(crate) fn spare(limit: u64) -> u64 {
    (limit * TOLERANCE).div_ceil(100)
}

/// Whether a client that asked for more than the limit got the limit: no more
/// than 2 % over or under it. Answers that straddle the window's ends may count
/// either way.
pub(crate) fn is_the_limit(window: &Window, limit: u64) -> bool {
    let spare = spare(limit);
    let surely = window.sum().saturating_sub(window.unsure);
    let perhaps = window.sum() + window.unsure;
    surely <= limit + spare && perhaps + spare >= limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(admitted: u64, unsure: u64) -> Window {
        Window {
            admitted: [admitted, 0, 0],
            unsure,
            denied: 0,
        }
    }

    #[test]
    fn two_percent_is_the_limit_and_three_is_not() {
        for (admitted, held) in [(97, false), (98, true), (102, true), (103, false)] {
            assert_eq!(is_the_limit(&window(admitted, 0), 100), held, "{admitted}");
        }
    }

    #[test]
    fn an_answer_across_the_edge_is_held_against_nobody() {
        assert!(is_the_limit(&window(104, 2), 100));
        assert!(is_the_limit(&window(96, 2), 100));
    }

    #[test]
    fn one_broken_promise_breaks_the_verdict_and_so_does_none_at_all() {
        let mut verdict = Verdict::default();
        assert!(!verdict.holds());
        verdict.note(true, "a");
        assert!(verdict.holds());
        verdict.note(false, "b");
        assert!(!verdict.holds());
        let last = verdict.lines().pop();
        assert_eq!(last.as_deref(), Some("demo: 1 of 2 promises broken"));
    }
}
