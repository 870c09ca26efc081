//! The files below `deploy/`, as text and as what they say.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use weir_tests::binaries;

/// A path below `deploy/`.
pub(crate) fn path(name: &str) -> PathBuf {
    binaries::workspace().join("deploy").join(name)
}

/// A file's text.
pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
}

/// What each document of a YAML file says.
pub(crate) fn documents(name: &str) -> Vec<Value> {
    let text = text(name);
    let read = |text: &str| {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
    };
    text.split("\n---\n").map(read).collect()
}

/// What a YAML file of one document says.
pub(crate) fn yaml(name: &str) -> Value {
    let mut documents = documents(name);
    assert_eq!(documents.len(), 1, "deploy/{name} is one document");
    documents.remove(0)
}

/// The items of a list; none if it is not there.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The text of a string.
pub(crate) fn string(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
}
