//! What a fleet admitted of each key beside what one limiter would have.
//!
//! Most keys of a long tail never come near their limit, and everybody admits all
//! of them. What a limiter is for shows on the contested ones: those of which the
//! exact limiter denied something.

use limiter::rule::Scope;

use crate::{plan::Plan, setup::Setup};

/// What was admitted, key by key.
pub(crate) struct Accuracy {
    keys: usize,
    /// By region and key; rules that all regions share are the first one's.
    tallies: Vec<Tally>,
    regions_share: bool,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    admitted: u32,
    exact: u32,
    denied: u32,
}

/// Of the contested keys together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contested {
    /// How many there are; those of each region apart.
    pub(crate) keys: u64,
    /// Requests of theirs that the fleet admitted.
    pub(crate) admitted: u64,
    /// The same of the exact limiter.
    pub(crate) exact: u64,
    /// What the two differ by, key by key.
    pub(crate) apart: u64,
}

impl Accuracy {
    /// Nothing admitted yet.
    pub(crate) fn new(setup: &Setup, plan: &Plan) -> Self {
        let global = setup.rules.first();
        let regions_share = global.is_some_and(|rule| rule.scope == Scope::Global);
        let places = if regions_share { 1 } else { setup.regions };
        Self {
            keys: plan.keys(),
            tallies: vec![Tally::default(); places * plan.keys()],
            regions_share,
        }
    }

    /// The exact limiter has decided.
    pub(crate) fn exact(&mut self, region: usize, key: usize, admitted: bool) {
        let tally = self.of(region, key);
        if admitted {
            tally.exact += 1;
        } else {
            tally.denied += 1;
        }
    }

    /// The fleet has admitted a request.
    pub(crate) fn admitted(&mut self, region: usize, key: usize) {
        self.of(region, key).admitted += 1;
    }

    fn of(&mut self, region: usize, key: usize) -> &mut Tally {
        let region = if self.regions_share { 0 } else { region };
        &mut self.tallies[region * self.keys + key]
    }

    /// What the contested keys come to.
    pub(crate) fn contested(&self) -> Contested {
        let mut sum = Contested::default();
        for tally in self.tallies.iter().filter(|tally| tally.denied > 0) {
            sum.keys += 1;
            sum.admitted += u64::from(tally.admitted);
            sum.exact += u64::from(tally.exact);
            sum.apart += u64::from(tally.admitted.abs_diff(tally.exact));
        }
        sum
    }
}
