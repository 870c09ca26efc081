//! What is said of whole files.
//!
//! `tests/golden/rules` holds files beside what is said of each, `bad-*` with
//! their errors and `good-*` with their table. `WEIR_BLESS=1` writes it anew.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use limiter::{bound::Fleet, time::Micros};

use super::{
    super::{check::say, *},
    golden, parse, said,
};

/// The fleet that the golden tables are worked out for.
pub(super) const FLEET: Fleet = Fleet {
    sources: 16,
    round_trip: Micros::from_millis(2),
    regions: 1,
    above: Micros::ZERO,
};

pub(super) fn golden_files(prefix: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(golden())
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|extension| extension != "txt"))
        .filter(|file| {
            file.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(prefix)
        })
        .collect();
    files.sort();
    files
}

fn compare(file: &Path, expected_status: u8) {
    let name = file.file_name().unwrap().to_str().unwrap();
    let folder = file.parent().unwrap();
    let (read, _) = RuleFile::parse_in(folder, name, &fs::read(file).unwrap());
    let (text, status) = say(name, read, Format::Table, FLEET);
    let text = text.replace(&format!("{}/", folder.display()), "");
    let beside = file.with_extension("txt");
    if env::var_os("WEIR_BLESS").is_some() {
        fs::write(&beside, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&beside).unwrap(), "{name}");
    assert_eq!(status, expected_status, "{name}: {text}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_as_written_beside_it() {
    let files = golden_files("bad-");
    assert!(files.len() >= 15);
    files.iter().for_each(|file| compare(file, 1));
}

#[test]
fn what_a_file_holds_is_said_as_written_beside_it() {
    let files = golden_files("good-");
    assert!(files.len() >= 4);
    files.iter().for_each(|file| compare(file, 0));
}

#[test]
fn every_error_has_its_place_its_field_and_what_is_allowed() {
    for file in golden_files("bad-") {
        let problems = RuleFile::parse("f", &fs::read(&file).unwrap()).unwrap_err();
        for Diagnostic { place, message, .. } in problems.0 {
            let place = place.unwrap();
            assert!(place.line >= 1 && place.column >= 1, "{file:?}");
            assert!(!message.is_empty(), "{file:?}");
        }
    }
}

#[test]
fn a_thousand_errors_are_not_all_shown() {
    let rules = "  - {}\n".repeat(1_000);
    let said = said(&format!("version: 1\ndomain: d\nrules:\n{rules}"));
    assert_eq!(said.lines().count(), 101);
    assert!(said.ends_with("\nand 2900 more"));
}

#[test]
fn a_file_that_is_not_there_says_so() {
    let (text, status) = check(Path::new("no-such-file.yaml"), Format::Table, FLEET);
    assert!(
        text.starts_with("no-such-file.yaml: cannot be read: "),
        "{text}"
    );
    assert_eq!(status, 1);
}

#[test]
fn json_output_holds_what_the_table_and_the_errors_say() {
    let read = |text: &str| {
        let (text, status) = say("r.yaml", parse(text), Format::Json, FLEET);
        (
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            status,
        )
    };
    let (good, status) =
        read("version: 1\ndomain: d\nrules:\n- {name: r, limit: 100, window: 1s, scope: global}\n");
    assert_eq!((status, &good["valid"]), (0, &true.into()));
    assert_eq!(good["rules"][0]["window"], "1s");
    assert_eq!(good["rules"][0]["bound"]["hits"], 102);

    let (bad, status) = read("version: 1\ndomain: d\nrules:\n- {name: r, limit: 0, window: 1s}\n");
    assert_eq!((status, &bad["valid"]), (1, &false.into()));
    assert_eq!(bad["errors"][0]["line"], 4);
    assert_eq!(bad["errors"][0]["column"], 20);
    assert_eq!(bad["errors"][0]["path"], "rules[0].limit");
    assert!(bad.get("rules").is_none());
}

#[test]
fn one_error_does_not_hide_another() {
    let parts = "ip, ".repeat(17);
    let proxies = "10.0.0.0/8, ".repeat(1_001);
    let said = said(&format!(
        "version: 2
domain: d
trusted_proxies: [ {proxies} ]
rules:
  - {{ name: a, limit: 0, window: 1m, match: {{ cidr: [ x ], headers: {{ y: [] }} }} }}
  - {{ name: b, limit: 1, window: 1m, key: [ {parts} ] }}
"
    ));
    let paths: Vec<_> = said.lines().map(|line| line.split(": ").nth(1)).collect();
    let expected = [
        "version",
        "trusted_proxies",
        "rules[0].limit",
        "rules[0].match.cidr[0]",
        "rules[0].match.headers.y",
        "rules[1]",
    ];
    assert_eq!(paths, expected.map(Some), "{said}");
}
