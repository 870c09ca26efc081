//! What responses change of one key's state: hits taken back, and hits spent beyond
//! what was lent.

use super::entry::Entry;
use crate::{borrow::tokens, time::Timestamp, window::WindowIndex};

impl Entry {
    /// Takes back hits that were counted in `window`. What is in no batch yet never
    /// was, and the tokens for it are in hand again, if that is the `present` window.
    /// Returns what is to stand in a report alone: those of another window than the
    /// one that is being reported.
    pub(super) fn return_hits(&mut self, window: WindowIndex, hits: u64, present: bool) -> u64 {
        if !self.shared {
            return 0;
        }
        if present {
            self.lease.remaining = self.lease.remaining.saturating_add(hits);
        }
        let report = &mut self.report;
        if report.window != window {
            return hits;
        }
        // What has leaked has been told to have.
        let undone = hits.min(report.pending.saturating_sub(report.leaked));
        report.pending = report.pending.saturating_sub(undone);
        report.unacked = report.unacked.saturating_sub(undone);
        report.returned = report.returned.saturating_add(hits.saturating_sub(undone));
        if present {
            let tokens = tokens(undone);
            self.lease.tokens = self.lease.tokens.saturating_add(tokens);
            self.claim.spent = self.claim.spent.saturating_sub(tokens);
        }
        0
    }

    /// Takes in what a response has cost beyond what its request had spent.
    pub(super) fn overspend(&mut self, hits: u64) {
        let cost = tokens(hits);
        let in_hand = self.lease.tokens.clamp(0, cost);
        self.lease.tokens = self.lease.tokens.saturating_sub(in_hand);
        self.lease.remaining = self.lease.remaining.saturating_sub(hits);
        self.claim.spent = self.claim.spent.saturating_add(in_hand);
        let over = cost.saturating_sub(in_hand);
        self.claim.overspent = self.claim.overspent.saturating_add(over);
        self.claim.offered = self.claim.offered.saturating_add(hits);
    }

    /// Whether responses have cost more than was in hand, and the region is to hear
    /// of it before it grants more.
    pub(super) fn is_overspent(&self, now: Timestamp) -> bool {
        let asks = self.shared && !self.claim.open && now >= self.lease.quiet;
        asks && self.claim.overspent > 0
    }

    /// What is left of a grant that was made before the region heard of what was
    /// spent since it was claimed. What responses have cost takes all of it at the
    /// most: the region has not lent it, and counts it by itself.
    pub(super) fn left_of(&self, granted: i64) -> i64 {
        let left = granted.saturating_sub(self.claim.spent);
        left.saturating_sub(self.claim.overspent).max(left.min(0))
    }
}
