//! The end of a run: what is on its way arrives, and the accounts are drawn up.

use limiter::ledger::Ledger;

use super::{SETTLE, World};
use crate::{
    accuracy::Contested,
    checkers::difference_between,
    checkers::{Difference, Tally},
    load::{Held, Load},
    region::Region,
};

/// What came of a run.
pub(crate) struct Run {
    pub(crate) tally: Tally,
    /// Requests that one central limiter would have admitted.
    pub(crate) exact: u64,
    pub(crate) contested: Contested,
    /// What is missing in books, and what is there more than once: in those of the
    /// regions, and of what they have acknowledged in those above.
    pub(crate) difference: Difference,
    /// The most that any window admitted over its limit, as part of that.
    pub(crate) over: f64,
    /// By region.
    pub(crate) loads: Vec<(Load, Held)>,
    /// What did not hold, in words.
    pub(crate) violations: Vec<String>,
}

impl World<'_> {
    /// Lets the fleet settle on a network that has healed, and draws up the
    /// accounts.
    pub(super) fn finish(mut self) -> Run {
        self.until(self.setup.end());
        let held: Vec<Held> = self.regions.iter().map(Region::held).collect();
        self.settle();
        self.account();
        self.conserve();
        let above = self.compare_regions();
        let loads = self.regions.iter().map(|region| region.load);
        let mut difference = Difference::default();
        difference.add(above);
        for (books, region) in self.checkers.books.iter().zip(&self.regions) {
            if let Some(ledger) = region.ledger() {
                difference.add(books.difference(ledger));
            }
        }
        Run {
            tally: self.checkers.tally,
            exact: self.exact.admitted(),
            contested: self.accuracy.contested(),
            difference,
            over: self.checkers.over(),
            loads: loads.zip(held).collect(),
            violations: self.checkers.violations.into_words(),
        }
    }

    fn settle(&mut self) {
        let restarts = self.setup.restarts.iter();
        let back = restarts.map(|restart| restart.at.after(restart.down)).max();
        let end = self.setup.end().max(back.unwrap_or_default()).after(SETTLE);
        for place in 0..self.sources.len() {
            self.sources[place].limiter.flush_now();
            self.drain(place);
        }
        self.until(end);
        if self.setup.global.is_none() {
            return;
        }
        // What sources have told their regions has to get up from there.
        (0..self.setup.regions).for_each(|region| {
            self.regions[region].flush_now();
            self.climb(region);
        });
        self.until(end.after(SETTLE));
    }

    /// Whether all that regions have acknowledged of global limits is in the books
    /// above, and there once.
    fn compare_regions(&mut self) -> Difference {
        let regions = self.setup.regions;
        let Some(above) = self.regions.get(regions).and_then(Region::ledger) else {
            return Difference::default();
        };
        let below = self.regions[..regions].iter().filter_map(Region::ledger);
        let below: Vec<&Ledger> = below.collect();
        let waiting: usize = below
            .iter()
            .filter_map(|ledger| ledger.upstream_stats(self.now))
            .map(|stats| stats.waiting)
            .sum();
        let difference = difference_between(&below, above);
        if waiting > 0 {
            let what = format!("{waiting} counts of regions are still on their way up");
            self.checkers.violated(self.now, &what);
        }
        difference
    }

    fn until(&mut self, end: limiter::time::Timestamp) {
        while self.queue.next_at().is_some_and(|next| next <= end) {
            self.step(&mut std::iter::empty().peekable());
        }
        self.now = self.now.max(end);
    }

    fn account(&mut self) {
        for place in 0..self.sources.len() {
            let source = &mut self.sources[place];
            let rules = source.limiter.take_rule_stats();
            let stats = source.limiter.stats(source.local(self.now));
            let waiting = source.held.len();
            self.checkers.tally.report(&rules, &stats);
            if waiting > 0 {
                let what = format!("source {place} still holds {waiting} requests back");
                self.checkers.violated(self.now, &what);
            }
        }
    }

    /// Every hit that was admitted is in the books, or owned up to as lost; and
    /// the sources' own accounts agree with what was seen from outside.
    fn conserve(&mut self) {
        let tally = self.checkers.tally;
        let reported = tally.reported;
        let (counted, returned) = self.checkers.acknowledged();
        let booked = counted + reported.untracked;
        if !self.is_sure() {
            self.expect_no_less(tally.hits_most, booked);
        } else {
            let left = booked.saturating_sub(returned);
            self.expect_equal("hits admitted", tally.hits, "hits in the books", left);
        }
        if self.is_sure() && reported.untracked == 0 && tally.unopened > 0 {
            let what = format!("{} responses nobody waits for", tally.unopened);
            self.checkers.violated(self.now, &what);
        }
        if self.setup.rules.len() == 1 || reported.leaked < tally.leaked {
            // An answer names one rule; another may have leaked, too.
            let (seen, told) = ("hits leaked", "leaks reported");
            self.expect_equal(seen, tally.leaked, told, reported.leaked);
        }
        self.expect_equal("requests held", tally.held, "holds reported", reported.held);
    }

    /// Whether what was admitted is all that can be in the books, and must be:
    /// no source has died, and no rule counts what it denies.
    fn is_sure(&self) -> bool {
        let all = self.setup.changes.iter().flat_map(|(_, rules)| rules);
        let mut rules = self.setup.rules.iter().chain(all);
        self.setup.rebirths.is_empty() && !rules.any(|rule| rule.count_denied)
    }

    fn expect_no_less(&mut self, most: u64, booked: u64) {
        if booked > most {
            let what = format!("{booked} hits in the books, {most} were asked for");
            self.checkers.violated(self.now, &what);
        }
    }

    fn expect_equal(&mut self, seen: &str, here: u64, told: &str, there: u64) {
        if here != there {
            let what = format!("{here} {seen}, and {there} {told}");
            self.checkers.violated(self.now, &what);
        }
    }
}
