//! The bits of `Rule.requires`: what a reader has to know of, lest it take a rule for
//! another.

use crate::rule::{Cost, Rule};

/// The window is a month of the calendar.
const MONTHS: u64 = 1 << 4;

/// A limit of 0 is no limit.
pub(super) const UNLIMITED: u64 = 1 << 5;

/// What a request costs stands in the request.
const REQUEST_COST: u64 = 1 << 8;

/// The response changes what a request has spent.
const RESPONSES: u64 = 1 << 9;

/// What this release knows.
pub(super) const KNOWN: u64 = MONTHS | UNLIMITED | REQUEST_COST | RESPONSES;

/// What a reader of this rule has to know.
pub(super) fn of(rule: &Rule) -> u64 {
    let months = match rule.quota.window.fixed() {
        Some(_) => 0,
        None => MONTHS,
    };
    let unlimited = if rule.unlimited { UNLIMITED } else { 0 };
    let request = match rule.cost {
        Cost::RequestHeader { .. } => REQUEST_COST,
        Cost::Fixed(_) | Cost::ResponseHeader { .. } => 0,
    };
    let responses = if rule.settles_late() { RESPONSES } else { 0 };
    months | unlimited | request | responses
}
