//! The scripts, and what the engine calls them.

use redis::Script;

/// Which one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Append,
    Beat,
    Chunk,
    Claim,
    Publish,
    Release,
    Renew,
    Rules,
}

/// All of them, in the order of their names.
pub(super) struct Scripts([(&'static str, Script); 8]);

impl Scripts {
    pub(super) fn new() -> Self {
        let texts = [
            include_str!("append.lua"),
            include_str!("beat.lua"),
            include_str!("chunk.lua"),
            include_str!("claim.lua"),
            include_str!("publish.lua"),
            include_str!("release.lua"),
            include_str!("renew.lua"),
            include_str!("rules.lua"),
        ];
        Self(texts.map(|text| (text, Script::new(text))))
    }

    /// What the engine calls it once it was loaded.
    pub(super) fn hash(&self, name: Name) -> &str {
        let found = self.0.get(name as usize);
        found.map_or("", |(_, script)| script.get_hash())
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(text, _)| *text)
    }
}
