//! `weir rules import`: other limiters' configuration as a rule file.
//!
//! | format | what is read |
//! |---|---|
//! | `envoy-ratelimit` | envoyproxy/ratelimit's descriptors, YAML or as its xDS has them |
//! | `cloudflare` | a rate-limiting ruleset, as the Rulesets API has it |
//! | `aws-waf` | rate-based statements: a web ACL, a rule group, or rules alone |
//! | `envoy-gateway` | `BackendTrafficPolicy`, with the `HTTPRoute`s beside it |
//! | `kuadrant` | `RateLimitPolicy`, or Limitador's limits |
//!
//! A source's rule becomes one rule, or is dropped: never half a condition, since
//! that would limit requests that the source leaves alone. What is written has
//! been read back by the rule file's own reader and says the same.

mod aws_waf;
mod build;
mod cloudflare;
mod entries;
mod envoy_gateway;
mod envoy_ratelimit;
mod expr;
mod kuadrant;
mod lexer;
mod names;
mod output;
mod report;
mod run;
mod source;
mod subject;
#[cfg(test)]
mod tests;

pub use entries::{Entries, Entry, EntryError};
pub use report::{Fidelity, Note, Report, RuleImport};
pub use run::{Imported, Options, Source, import, parse};
