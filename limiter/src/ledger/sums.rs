//! What all loans of a key come to, so that not each has to be looked at for
//! each claim.
//!
//! Taken at one instant, and kept up as loans are made. What is lent is never
//! underestimated meanwhile: rates go on coming in, and a loan that ends only
//! makes it less.

use super::{fair::per_second, lend::HIT, loan::Loan};
use crate::time::{Micros, Timestamp};

/// How long sums are good for.
const GOOD_FOR: Micros = Micros::from_millis(50);

/// Sums over loans, in millionths of a hit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    at: Timestamp,
    lent: u64,
    /// Of `lent`: up to one hit of each source.
    pub(super) covered: u64,
    pub(super) idle: u64,
    pub(super) demand: u64,
    /// Demands with something to spare.
    pub(super) ample: u64,
    pub(super) rates: u64,
    pub(super) loans: u64,
    /// The level up to which all demands can be met, if it was looked at.
    pub(super) level: u64,
}

impl Sums {
    /// Those of all these loans.
    pub(super) fn of(loans: &[Loan], now: Timestamp) -> Self {
        let mut sums = Self {
            at: now,
            ..Self::default()
        };
        for loan in loans {
            sums.add(loan);
        }
        sums
    }

    /// Whether they are still good.
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        self.at <= now && now.since(self.at) < GOOD_FOR
    }

    /// Adds a loan, as it was when the sums were taken.
    pub(super) fn add(&mut self, loan: &Loan) {
        self.combine(loan, u64::saturating_add);
    }

    /// Takes out a loan that is in them.
    pub(super) fn remove(&mut self, loan: &Loan) {
        self.combine(loan, u64::saturating_sub);
    }

    fn combine(&mut self, loan: &Loan, with: impl Fn(u64, u64) -> u64) {
        let at = self.at;
        if loan.is_over(at) {
            return;
        }
        let (lent, demand) = (loan.lent(at), loan.demand(at));
        self.lent = with(self.lent, lent);
        self.covered = with(self.covered, lent.min(HIT));
        self.idle = with(self.idle, loan.idle(at));
        self.demand = with(self.demand, demand);
        self.ample = with(self.ample, loan.ample(at));
        self.rates = with(self.rates, loan.rate(at));
        self.loans = with(self.loans, 1);
    }

    /// The most that can be lent at `now`.
    pub(super) fn lent_at(&self, now: Timestamp) -> u64 {
        let more = per_second(self.rates, now.since(self.at));
        self.lent.saturating_add(more)
    }
}
