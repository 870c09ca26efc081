//! What the rule file will hold and does not yet: named, so that nobody takes
//! it for a slip of the pen.

/// What is said of it.
pub(super) const NOT_YET: &str = "not supported yet";

/// Fields of the file.
pub(super) const FILE: &[&str] = &["tiers"];

/// Fields of a rule.
pub(super) const RULE: &[&str] = &["per_tier"];
