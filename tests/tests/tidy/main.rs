//! The rules of the house, held over the source.
//!
//! What the compiler or clippy can say, they say. The rest is here: each rule is
//! a function from the house to what is wrong with it, tested once on the house
//! as it is and once on one that breaks the rule, so that a rule that has gone
//! blind shows. To add one, see `CONTRIBUTING.md`.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot read the house fails"
)]

mod crates;
mod documents;
mod hosts;
mod house;
mod imports;
mod size;

use house::House;

/// Fails with everything that is wrong.
fn hold(rule: impl Fn(&House) -> Vec<String>) {
    let wrong = rule(&House::ours());
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The rule finds something in a house made of these files, given as path and
/// text.
fn finds(rule: impl Fn(&House) -> Vec<String>, files: &[(&str, &str)], part: &str) {
    let wrong = rule(&House::of(files));
    assert!(
        wrong.iter().any(|text| text.contains(part)),
        "`{part}` is not among {wrong:?}"
    );
}
