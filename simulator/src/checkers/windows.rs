//! While nothing goes wrong, no window of any key admits more than the limit and
//! what its rule says it may be missed by, what was given back not counted.
//!
//! Counted from the verdicts alone, by the true clock.

use limiter::{
    bound::{Fleet, Over},
    count::Count,
    request::{Hit, Query},
    rule::{Action, Consistency, Rule, Scope},
    time::{Micros, Timestamp},
};

use crate::{
    by_name::ByName,
    exact::shared_by,
    setup::{START, Setup},
};

/// Until every region has been answered from above nobody there can be asked: what is
/// admitted under global rules is a leak.
const LEARNT: Timestamp = START.after(Micros::from_secs(1));

/// Hits that two clocks may file under different windows.
const SLACK: u64 = 2;

/// What was admitted of each key, as one limiter would have counted it.
pub(crate) struct Windows {
    /// None in a run in which something goes wrong.
    fleet: Option<Fleet>,
    /// Whether an aggregator above the regions keeps global rules.
    is_global: bool,
    /// The most that any window admitted over its limit, as part of that.
    pub(crate) over: f64,
    /// By region; those that all regions share are the first one's.
    counts: Vec<ByName<Count>>,
}

impl Windows {
    /// Of a run.
    pub(crate) fn new(setup: &Setup) -> Self {
        let fleet = setup.is_healthy().then(|| setup.fleet());
        Self::of(fleet, setup.regions, setup.global.is_some())
    }

    /// Of this fleet, if nothing happens to it.
    pub(crate) fn of(fleet: Option<Fleet>, regions: usize, is_global: bool) -> Self {
        Self {
            fleet,
            is_global,
            over: 0.0,
            counts: (0..regions).map(|_| ByName::default()).collect(),
        }
    }

    /// What is admitted from now on has no bound.
    pub(crate) const fn unbound(&mut self) {
        self.fleet = None;
    }

    /// A request was admitted. What is wrong with that, if anything.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a share, of limits that are far below 2^53"
    )]
    pub(crate) fn admitted(
        &mut self,
        query: &Query,
        region: usize,
        now: Timestamp,
    ) -> Result<(), String> {
        for hit in &query.hits {
            let rule = query.rules.rule(hit.rule).filter(|rule| is_kept(rule));
            let Some(rule) = rule else { continue };
            let counts = &mut self.counts[shared_by(rule, region)];
            let count = counts.entry(hit.key).or_default();
            count.add(&rule.quota, hit.cost, now);
            let over = -i128::from(count.room_micro(&rule.quota, now)) / 1_000_000;
            if over <= 0 {
                continue;
            }
            self.over = self.over.max(over as f64 / rule.quota.limit.get() as f64);
            let leaks = self.is_global && rule.scope == Scope::Global && now < LEARNT;
            let Some(fleet) = self.fleet.filter(|_| !leaks) else {
                continue;
            };
            let most = Over::as_they_come(rule, fleet).hits() + SLACK * hit.cost;
            if over > i128::from(most) {
                let name = &rule.name;
                return Err(format!(
                    "{over} hits of {:?} over the limit of {name}, {most} are its bound",
                    hit.key
                ));
            }
        }
        Ok(())
    }

    /// The response to a request that was admitted says now what it has cost in
    /// all. What that is more has happened, and is no fault of who admitted it.
    pub(crate) fn settled(
        &mut self,
        rule: &Rule,
        hit: &Hit,
        cost: u64,
        region: usize,
        (at, now): (Timestamp, Timestamp),
    ) {
        let counts = &mut self.counts[shared_by(rule, region)];
        if let Some(count) = counts.get_mut(&hit.key) {
            let window = rule.quota.window.index(at);
            let back = hit.cost.saturating_sub(cost);
            count.give_back(&rule.quota, window, back, now);
        }
    }
}

/// Whether a rule is one that all sources together keep.
fn is_kept(rule: &Rule) -> bool {
    rule.scope != Scope::Pop
        && rule.consistency == Consistency::Leased
        && rule.action == Action::Deny
        && !rule.count_denied
}
