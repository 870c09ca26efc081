//! Whole fleets on one seed: the real [`Limiter`](limiter::edge::Limiter)s and
//! the real [`Ledger`](limiter::ledger::Ledger)s of their regions, on a virtual clock, over a
//! network that delays, loses, doubles and reorders, with regions that crash.
//!
//! Every arrival is also put to one central exact limiter, so that what a fleet
//! admits can be told from what it should have. Checkers that know nothing of
//! the workload hold the run to what the design promises.
//!
//! The same scenario and seed give the same bytes, on every machine: nothing
//! here reads a clock, iterates over a hash table, or leaves rounding to the
//! platform.
//!
//! It does not model anything: what is wrong in the core is wrong here.
#![allow(
    clippy::indexing_slicing,
    reason = "sources, keys and rules are named by places that the simulator handed out itself"
)]

mod accuracy;
mod arrivals;
mod by_name;
mod chance;
mod checkers;
mod cost;
mod disk;
mod exact;
mod gateway;
mod load;
mod network;
mod plan;
mod queue;
mod region;
mod report;
mod response;
mod run;
pub mod scenario;
mod setup;
mod source;
mod swarm;
mod vectors;
mod world;

pub use report::{RegionReport, Report};
pub use run::{Format, Options, Outcome, Progress, run, run_text};
pub use swarm::{Failure, swarm, swarm_of_regions};
