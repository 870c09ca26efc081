//! The rule file: what people write, read into what is enforced.
//!
//! YAML and JSON are read by one parser into a tree that knows where
//! everything stands and keeps every scalar as it was written (`tree`). So
//! `1.10` stays a version and `no` a word, and a value that is wrong does not
//! hide the next one: all errors of a file are reported at once, each with its
//! place, its field, and what is allowed ([`Diagnostic`]). That is why there is
//! no serde struct for it: serde stops at the first error, and loses the text.
//!
//! | field | default |
//! |---|---|
//! | `trusted_proxies` | nobody |
//! | `match` | every request |
//! | `key` | none: one count for all |
//! | `algorithm` | `sliding_window` |
//! | `burst` | the limit |
//! | `cost` | 1 |
//! | `count_denied` | `false` |
//! | `scope` | `region` |
//! | `consistency` | `leased` |
//! | `local_cap` | the limit |
//! | `tolerance` | 2% |
//! | `hold` | 5ms |
//! | `on_failure` | `allow`, in both cases |
//! | `action` | `deny` |
//! | `penalty` | 0s |
//! | `commit` | `durable` |
//! | `response` | 429 and a problem document |
//! | `refund` | none: what is spent stays so |
//! | `ratelimit_headers` | `draft`, when denied |
//! | `lists` | none: a list is a file beside this one |
//! | `tiers`, `per_tier` | the rule is the same for everybody |
//!
//! A `cost` is a number, `{ header: x-cost, max: 100, default: 1 }` of the request, or
//! `{ response_header: x-cost, max: 100, upfront: 1, default: 1 }`. What is no number
//! costs the default, and more than `max` costs `max`.
//!
//! In a `match` everything must hold. `any` is a list of matches of which one must
//! hold, `not` one of which none may, `all` one of which each must.
//!
//! A list of one may be written without brackets. Header names are taken in
//! lower case, since they have none.

mod at;
mod attributes;
mod check;
mod compile;
mod conditions;
mod cost;
mod described;
mod diagnostic;
mod diff;
mod expect;
mod explain;
mod fields;
mod file;
pub mod import;
mod inline;
mod key;
mod lists;
mod numbers;
mod report;
mod response;
mod rule;
mod suggest;
mod table;
mod text;
mod tiers;
mod tree;
mod words;
mod write;

#[cfg(test)]
mod tests;

pub use check::{Format, check};
pub use compile::{CompileError, Compiled, compile};
pub use cost::CostSaid;
pub use described::{Described, DescribedError};
pub use diagnostic::{Diagnostic, Place, Problems};
pub use diff::{Difference, diff};
pub use explain::explain;
pub use file::{FILE_LEN_MAX, RuleFile};
pub use inline::with_lists;
pub use report::{RuleReport, RulesReport};
pub use text::RuleText;

/// What a rule file can say, as JSON Schema (2020-12): for editors, and for those
/// who write rules by program. The reader knows more.
pub const SCHEMA: &str = include_str!("../../rules.schema.json");
