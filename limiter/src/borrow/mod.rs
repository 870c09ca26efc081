//! What who is lent something knows of its loans: a source of its region's, a region of
//! those of the aggregator above it.

mod crowded;
mod lease;
mod link;

pub(crate) use crowded::Crowded;
pub(crate) use lease::{HIT, Lease, tokens};
pub(crate) use link::Link;
