//! The adapter for servers of WASI's HTTP: a limiter in front of a handler, as
//! `wit/middleware/middleware.wit` has it.
//!
//! - `exports`: what a server calls, and the order of things in one request.
//! - `state`: the instance's source, and what waits for it. Nothing in there waits.
//! - `asked`: a request, and a response, as the shared logic sees them.
//! - `region`: one message to the region, and its answer.
//! - `answer`: what a client is told.
//! - `variables`: the settings, from the environment.

mod answer;
mod asked;
mod exports;
mod region;
mod state;
mod variables;
