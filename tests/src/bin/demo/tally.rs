//! What clients were answered: by window, by second, and in all.

use std::collections::BTreeMap;

use crate::plan::{CLIENTS, POPS, Rule};
use crate::stage::ByRule;
use crate::traffic::Answer;

const SECOND_US: u64 = 1_000_000;

/// What one client got in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Admitted, by POP.
    pub(crate) admitted: [u64; POPS],
    /// Of those, how many were sent in the window before: nobody but the POP
    /// knows which of the two they were counted in.
    pub(crate) unsure: u64,
    /// Refused.
    pub(crate) denied: u64,
}

impl Window {
    /// Admitted by all POPs.
    pub(crate) fn sum(&self) -> u64 {
        self.admitted.iter().sum()
    }
}

/// A refusal that named its limit.
#[derive(Debug, Clone, Copy)]
struct Named {
    pop: usize,
    sent_us: u64,
    limit: u64,
}

/// All answers so far.
#[derive(Debug)]
pub(crate) struct Tally {
    window_us: u64,
    windows: BTreeMap<(usize, u64), Window>,
    by_second: BTreeMap<u64, [u64; POPS]>,
    named: Vec<Named>,
    admitted: ByRule,
    /// Requests without an answer, or with one that is neither 200 nor 429.
    pub(crate) failed: u64,
}

impl Tally {
    pub(crate) fn new(window_s: u64) -> Self {
        Self {
            window_us: window_s * SECOND_US,
            windows: BTreeMap::new(),
            by_second: BTreeMap::new(),
            named: Vec::new(),
            admitted: ByRule::default(),
            failed: 0,
        }
    }

    pub(crate) fn add(&mut self, answer: Answer) {
        let Some(client) = CLIENTS.get(answer.client) else {
            return;
        };
        let window = answer.answered_us / self.window_us;
        let cell = self.windows.entry((answer.client, window)).or_default();
        match answer.status {
            Some(200) => {
                add_at(&mut cell.admitted, answer.pop);
                cell.unsure += u64::from(answer.sent_us / self.window_us != window);
                let second = answer.answered_us / SECOND_US;
                add_at(self.by_second.entry(second).or_default(), answer.pop);
                for (rule, sum) in Rule::ALL.iter().zip(&mut self.admitted) {
                    *sum += u64::from(*rule == client.rule);
                }
            }
            Some(429) => cell.denied += 1,
            _ => self.failed += 1,
        }
        if let (Rule::Key, Some(limit)) = (client.rule, answer.limit) {
            self.named.push(Named {
                pop: answer.pop,
                sent_us: answer.sent_us,
                limit,
            });
        }
    }

    /// What a client got in a window, and how many of it may belong to the next.
    pub(crate) fn window(&self, client: usize, window: u64) -> Window {
        let cell = |window| self.windows.get(&(client, window)).copied();
        let mut found = cell(window).unwrap_or_default();
        found.unsure += cell(window + 1).unwrap_or_default().unsure;
        found
    }

    /// Admitted in a second, by POP.
    pub(crate) fn second(&self, second: u64) -> [u64; POPS] {
        self.by_second.get(&second).copied().unwrap_or_default()
    }

    /// Admitted in all, by rule.
    pub(crate) fn admitted(&self) -> ByRule {
        self.admitted
    }

    /// When each POP had gone over to `limit` for keys: the first request after
    /// which it named no other. None while a POP has not named it at all.
    pub(crate) fn took_hold_us(&self, since_us: u64, limit: u64) -> Option<[u64; POPS]> {
        let mut times = [0; POPS];
        for (pop, time) in times.iter_mut().enumerate() {
            let of_pop = || self.named.iter().filter(|named| named.pop == pop);
            let news = of_pop().filter(|named| named.limit == limit);
            let first_new = news.map(|named| named.sent_us).min()?;
            let olds = of_pop().filter(|named| named.limit != limit && named.sent_us >= since_us);
            let last_old = olds.map(|named| named.sent_us).max();
            *time = first_new.max(last_old.unwrap_or(0));
        }
        Some(times)
    }
}

fn add_at(counts: &mut [u64; POPS], place: usize) {
    if let Some(count) = counts.get_mut(place) {
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(sent_us: u64, answered_us: u64, limit: Option<u64>) -> Answer {
        Answer {
            pop: 0,
            client: 0,
            sent_us,
            answered_us,
            status: Some(if limit.is_some() { 429 } else { 200 }),
            limit,
        }
    }

    #[test]
    fn an_answer_across_the_end_of_a_window_is_unsure_in_both() {
        let mut tally = Tally::new(1);
        tally.add(answer(999_999, 1_000_001, None));
        let (first, second) = (tally.window(0, 0), tally.window(0, 1));
        assert_eq!((first.sum(), first.unsure), (0, 1));
        assert_eq!((second.sum(), second.unsure), (1, 1));
    }

    #[test]
    fn a_pop_that_names_the_old_limit_again_has_not_gone_over() {
        let mut tally = Tally::new(1);
        for (pop, sent_us, limit) in [(0, 10, 5), (0, 20, 9), (1, 11, 5), (2, 12, 5)] {
            tally.add(Answer {
                pop,
                ..answer(sent_us, sent_us, Some(limit))
            });
        }
        assert_eq!(tally.took_hold_us(0, 5), Some([20, 11, 12]));
        assert_eq!(tally.took_hold_us(0, 9), None);
    }
}
