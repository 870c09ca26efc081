//! What must hold at every step, whatever the workload does.
//!
//! Apart from the workload on purpose: a checker sees messages, verdicts and
//! the books, and none of what made them. It must not be possible to make a
//! run pass by making its traffic easier to check.

use limiter::{
    decision::{Decision, Tier, Verdict},
    edge::Open,
    ledger::Ledger,
    request::Query,
    rule::Consistency,
    time::Timestamp,
    wire::SyncRequest,
};
use prost::Message;

use crate::{
    region::{Reply, Synced},
    setup::Setup,
    world::{Responding, Speaker},
};

mod books;
mod leases;
mod limits;
mod tally;
#[cfg(test)]
mod tests;
mod windows;

pub(crate) use books::{Books, Difference, difference_between};
use leases::Leases;
use limits::Limits;
pub(crate) use tally::Tally;
use windows::Windows;

/// How many violations are told; the others are counted.
const TOLD_MAX: usize = 3;

/// All of them.
pub(crate) struct Checkers {
    /// By region, as `limits`.
    pub(crate) books: Vec<Books>,
    pub(crate) tally: Tally,
    leases: Leases,
    limits: Vec<Limits>,
    /// Leases are looked at of every so many sources.
    step: usize,
    windows: Windows,
    regions: usize,
    keys_max: u64,
    start: Timestamp,
    pub(crate) violations: Violations,
}

/// How many sources' leases are looked at, about: to remember those of all would
/// take more memory than a large fleet itself, and more time.
const SOURCES_MAX: usize = 512;

/// A source, and whom it speaks to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) source: usize,
    pub(crate) region: usize,
}

/// Whether a request was admitted from a lease.
fn is_lent(query: &Query, decision: &Decision) -> bool {
    let rule = query.rules.rule(decision.rule);
    let leased = rule.is_some_and(|rule| rule.consistency == Consistency::Leased);
    decision.tier == Tier::Lease && leased
}

/// What did not hold.
#[derive(Default)]
pub(crate) struct Violations {
    told: Vec<String>,
    count: u64,
}

impl Checkers {
    /// Those of a run.
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            books: (0..setup.ledgers()).map(|_| Books::default()).collect(),
            tally: Tally::default(),
            leases: Leases::default(),
            limits: (0..setup.ledgers())
                .map(|place| Limits::new(place, setup))
                .collect(),
            step: setup.sources().div_ceil(SOURCES_MAX),
            windows: Windows::new(setup),
            regions: setup.regions,
            keys_max: setup.keys_max as u64,
            start: setup.start,
            violations: Violations::default(),
        }
    }

    /// Something that must not happen has.
    pub(crate) fn violated(&mut self, now: Timestamp, what: &str) {
        self.violations.add(self.start, now, what);
    }

    /// A request has been answered.
    pub(crate) fn verdict(
        &mut self,
        who: Who,
        query: &Query,
        verdict: &Verdict,
        now: Timestamp,
        local: Timestamp,
    ) {
        self.tally.verdict(query, verdict);
        if let Verdict::Allow(decision) = verdict {
            if decision.tier == Tier::Fallback {
                // A leak, for want of memory.
                self.windows.unbound();
            }
            if let Err(what) = self.windows.admitted(query, who.region, now) {
                self.violated(now, &what);
            }
        }
        match verdict {
            Verdict::Pass if !query.hits.is_empty() => {
                self.violated(now, "a request that a rule applies to was passed");
            }
            Verdict::Hold { .. } => {
                self.violated(now, "a request was held past its patience");
            }
            Verdict::Allow(decision)
                if self.is_looked_at(who.source) && is_lent(query, decision) =>
            {
                let hit = query.hits.iter().find(|hit| hit.rule == decision.rule);
                if let Some(fault) =
                    hit.and_then(|hit| self.leases.spent(who.source, hit.key, local))
                {
                    self.violated(now, &fault);
                }
            }
            Verdict::Allow(_) | Verdict::Deny(_) | Verdict::Pass => {}
        }
    }

    /// A request was admitted, and this is what its source keeps of it until its
    /// response comes.
    pub(crate) fn opened(&mut self, query: &Query, open: Option<&Open>) {
        self.tally.opened(query, open);
    }

    /// The response has come to a request that was admitted.
    pub(crate) fn responded(
        &mut self,
        query: &Query,
        region: usize,
        responding: &Responding,
        now: Timestamp,
    ) {
        for kept in responding.open.hits() {
            let hit = query.hits.iter().find(|hit| hit.key == kept.key);
            let rule = hit.and_then(|hit| query.rules.rule(hit.rule));
            let (Some(hit), Some(rule)) = (hit, rule) else {
                self.violated(now, "a response was waited for under no rule");
                continue;
            };
            let cost = responding.response.cost(rule, hit.cost);
            self.tally.settle(rule, hit.cost, cost);
            self.windows
                .settled(rule, hit, cost, region, (responding.at, now));
        }
    }

    /// A region has taken in a message, or the aggregator above.
    pub(crate) fn synced(
        &mut self,
        from: Speaker,
        region: usize,
        synced: &Synced,
        ledger: &Ledger,
        now: Timestamp,
    ) {
        let books = self.books[region].synced(synced, ledger, now);
        let looked_at = match from {
            Speaker::Source(source) => self.is_looked_at(source),
            Speaker::Region(_) => true,
        };
        let limits = if looked_at {
            self.limits[region].synced(synced, ledger, now)
        } else {
            Ok(())
        };
        for what in [books, limits].into_iter().filter_map(Result::err) {
            let who = if region < self.regions {
                format!("region {region}")
            } else {
                "the aggregator above".to_owned()
            };
            self.violated(now, &format!("{who}: {what}"));
        }
    }

    /// A source has sent a message.
    pub(crate) fn sent(&mut self, source: usize, body: &[u8], now: Timestamp) {
        if !self.is_looked_at(source) {
            return;
        }
        match SyncRequest::decode(body) {
            Ok(request) => self.leases.claimed(source, &request),
            Err(error) => self.violated(now, &format!("source {source} sent {error}")),
        }
    }

    /// A reply has reached a source.
    pub(crate) fn answered(&mut self, source: usize, reply: &Reply) {
        if self.is_looked_at(source) {
            self.leases.granted(source, reply);
        }
    }

    const fn is_looked_at(&self, source: usize) -> bool {
        source.is_multiple_of(self.step)
    }

    /// A region has died.
    pub(crate) fn crashed(&mut self, region: usize, now: Timestamp) {
        self.books[region].crashed(now);
    }

    /// A region is back.
    pub(crate) fn restarted(&mut self, region: usize, ledger: &Ledger, now: Timestamp) {
        if let Err(what) = self.books[region].compare(ledger) {
            self.violated(now, &format!("after a restart {what}"));
        }
    }

    /// Hits that the regions have acknowledged in all, and hits given back.
    pub(crate) fn acknowledged(&self) -> (u64, u64) {
        let books = self.books.iter().take(self.regions);
        let each = books.map(Books::acknowledged);
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// The most that any window admitted over its limit, as part of that.
    pub(crate) const fn over(&self) -> f64 {
        self.windows.over
    }

    /// A region has been looked at: it knows of no key that nobody asked for.
    pub(crate) fn ledger(&mut self, keys: usize, asked: usize, now: Timestamp) {
        if keys > asked {
            self.violated(now, &format!("the region holds {keys} keys, {asked} exist"));
        }
    }

    /// A source has been looked at: is it within its memory?
    pub(crate) fn memory(&mut self, source: usize, keys: u64, now: Timestamp) {
        if keys > self.keys_max {
            let keys_max = self.keys_max;
            self.violated(
                now,
                &format!("source {source} holds {keys} keys, at most {keys_max} are allowed"),
            );
        }
    }
}

impl Violations {
    fn add(&mut self, start: Timestamp, now: Timestamp, what: &str) {
        self.count += 1;
        if self.told.len() < TOLD_MAX {
            let at = now.since(start).get();
            let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
            self.told
                .push(format!("at {seconds}.{micros:06} s: {what}"));
        }
    }

    /// In words, the first ones.
    pub(crate) fn into_words(self) -> Vec<String> {
        let more = self.count.saturating_sub(self.told.len() as u64);
        let more = (more > 0).then(|| format!("and {more} more of the kind"));
        self.told.into_iter().chain(more).collect()
    }
}
