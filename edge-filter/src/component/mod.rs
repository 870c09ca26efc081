//! The adapter for hosts of WebAssembly components: the limiter as plain functions,
//! as `wit/limiter.wit` has them.
//!
//! - `exports`: what a host calls, and nothing more: the interface's types in, the
//!   shared logic's out.
//! - `instance`: one instance's source.
//! - `checked`: what a decision comes to, packed or in full.
//! - `asked`: a request as the interface has it, for the rules to look at.
//!
//! Nothing is asked of a host: time and what is random are parameters.

mod asked;
mod checked;
mod exports;
mod instance;
