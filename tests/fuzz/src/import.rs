//! Other limiters' configuration.

use aggregator::rules::RuleFile;
use aggregator::rules::import::{Options, Source, parse};

/// The first byte says whose it is, `0` to `4`; the rest is the configuration.
pub fn run(data: &[u8]) {
    let Some((first, text)) = data.split_first() else {
        return;
    };
    let Some(source) = Source::ALL.get(usize::from(first.wrapping_sub(b'0'))) else {
        return;
    };
    let Ok(imported) = parse("fuzz", text, *source, &Options::default()) else {
        return;
    };
    let rules = imported.rules.unwrap_or_default();
    if let Err(problems) = RuleFile::parse("rules", rules.as_bytes()) {
        panic!("what was imported is refused: {problems}\n{rules}");
    }
}
