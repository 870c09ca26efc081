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
//!
//! A list of one may be written without brackets. Header names are taken in
//! lower case, since they have none.

mod at;
mod check;
mod conditions;
mod diagnostic;
mod fields;
mod file;
mod key;
mod later;
mod numbers;
mod report;
mod rule;
mod suggest;
mod table;
mod tree;
mod words;

#[cfg(test)]
mod tests;

pub use check::{Format, check};
pub use diagnostic::{Diagnostic, Place, Problems};
pub use file::{FILE_LEN_MAX, RuleFile};
pub use report::{RuleReport, RulesReport};
