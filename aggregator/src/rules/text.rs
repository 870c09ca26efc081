//! The text of a rule file, as it was written.

use std::sync::Arc;

use serde::de::IgnoredAny;

/// A rule file's text. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText(Arc<str>);

impl RuleText {
    /// A text, whatever it says.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is JSON. A rule file that is not is YAML.
    pub fn is_json(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.0).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_from_yaml_by_its_text() {
        assert!(RuleText::new("{\"version\": 1}").is_json());
        assert!(!RuleText::new("version: 1").is_json());
        assert!(!RuleText::new("{version: 1}").is_json());
    }
}
