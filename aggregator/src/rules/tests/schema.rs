//! The published schema against the reader: what one takes, the other does.

use std::{collections::BTreeSet, fs, path::PathBuf};

use jsonschema::Validator;
use serde_json::Value;

use super::{super::*, golden, said::golden_files};

fn validator() -> Validator {
    jsonschema::validator_for(&document()).unwrap()
}

fn document() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// A file as an editor that knows YAML sees it; none if it is not even that.
fn seen(file: &PathBuf) -> Option<Value> {
    serde_saphyr::from_str(&fs::read_to_string(file).ok()?).ok()
}

fn imported() -> Vec<PathBuf> {
    let folders = fs::read_dir(golden().join("../import")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files
        .filter(|file| file.to_str().unwrap().ends_with(".rules.yaml"))
        .collect()
}

#[test]
fn every_good_file_and_every_imported_one_is_good_by_the_schema() {
    let validator = validator();
    let files = [golden_files("good-"), imported()].concat();
    assert!(files.len() > 30, "{}", files.len());
    for file in files {
        let seen = seen(&file).unwrap();
        let wrong: Vec<_> = validator.iter_errors(&seen).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", file.display());
    }
}

/// Rule files to copy: in a folder of examples, and in what the project says of itself.
fn examples() -> Vec<(String, String)> {
    let house = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| fs::read_to_string(house.join(name)).unwrap();
    let mut examples = vec![("deploy/cloudflare/rules.yaml".to_owned(), String::new())];
    for (name, text) in &mut examples {
        *text = read(name);
    }
    for document in ["README.md", "deploy/README.md"] {
        let text = read(document);
        let blocks = text.split("```yaml\n").skip(1);
        let blocks = blocks.filter_map(|block| Some(block.split_once("```")?.0.to_owned()));
        let rules = blocks.filter(|block| block.contains("version: 1"));
        examples.extend(rules.map(|block| (document.to_owned(), block)));
    }
    examples
}

#[test]
fn examples_are_good_by_the_schema_and_by_the_reader() {
    let validator = validator();
    let examples = examples();
    assert!(examples.len() > 1, "{}", examples.len());
    for (name, text) in examples {
        let seen: Value = serde_saphyr::from_str(&text).unwrap();
        let wrong: Vec<_> = validator.iter_errors(&seen).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        // Lists lie beside a file, and there are none beside these.
        if !text.contains(".txt") {
            let read = RuleFile::parse(&name, text.as_bytes());
            read.unwrap_or_else(|problems| panic!("{problems}"));
        }
    }
}

/// What a schema does not see: what is gone once YAML is read, names that come
/// twice or name nothing, and what a text must look like inside.
const BEYOND: [&str; 5] = [
    "bad-alias",
    "bad-duplicate-name",
    "bad-name",
    "bad-no-tiers",
    "bad-tag",
];

#[test]
fn what_is_wrong_by_its_shape_is_wrong_by_the_schema() {
    let validator = validator();
    let (mut wrong, mut missed) = (0, Vec::new());
    for file in golden_files("bad-") {
        let stem = file.file_stem().unwrap().to_str().unwrap().to_owned();
        match seen(&file) {
            Some(seen) if validator.is_valid(&seen) => missed.push(stem),
            _ => wrong += 1,
        }
    }
    assert_eq!(missed, BEYOND);
    assert!(wrong >= 12, "{wrong}");
}

#[test]
fn the_schema_knows_the_fields_that_the_reader_knows() {
    let document = document();
    for (place, known) in [
        ("/properties", file::FIELDS),
        ("/$defs/rule/properties", rule::FIELDS),
        ("/$defs/match/properties", conditions::FIELDS),
        ("/$defs/response/properties", response::FIELDS),
        ("/$defs/tier/properties", tiers::FIELDS),
        ("/$defs/forTier/anyOf/1/properties", rule::TIER_FIELDS),
    ] {
        let told = document.pointer(place).unwrap().as_object().unwrap();
        let told: BTreeSet<&str> = told.keys().map(String::as_str).collect();
        assert_eq!(told, known.iter().copied().collect(), "{place}");
    }
    for (field, words) in [
        ("algorithm", words::names(words::ALGORITHM)),
        ("scope", words::names(words::SCOPE)),
        ("consistency", words::names(words::CONSISTENCY)),
        ("action", words::names(words::ACTION)),
        ("commit", words::names(words::COMMIT)),
    ] {
        let told = &document["$defs"]["rule"]["properties"][field]["enum"];
        assert_eq!(told, &Value::from(words), "{field}");
    }
}
