//! What `deploy/` holds is right as far as that shows without a cluster: it parses, its
//! parts refer to each other, the service takes what it is told, and whatever an alert
//! or a panel asks for is there to be asked.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod alerts;
mod compose;
mod files;
mod kubernetes;
mod serve;
