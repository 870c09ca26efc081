//! By the region's books, what was admitted and what is lent never exceed the
//! limit and its tolerance together.

use limiter::{ledger::Ledger, time::Timestamp};

use crate::region::Synced;

/// Whether a message has led to more being admitted or lent than there is.
///
/// Awaits a view of what the ledger has lent: `Ledger::audit(key, now)` with
/// the room left and the tokens lent, in millionths of a hit.
pub(crate) const fn overspent(_synced: &Synced, _ledger: &Ledger, _now: Timestamp) -> Option<String> {
    None
}
